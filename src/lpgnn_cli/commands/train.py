"""`lpgnn train`: compose, prepare, train every fold, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hydra.core.hydra_config import HydraConfig

from lpgnn_cli import tracking
from lpgnn_cli.config.compose import given_keys
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.errors import RunFailed, UserError, describe_os_error
from lpgnn_cli.reporting.progress import make_progress
from lpgnn_cli.reporting.train_table import closing_table
from lpgnn_cli.run import compute
from lpgnn_cli.runfolder import FAILED, FINISHED, INTERRUPTED, RunFolder, RunRecord
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.screen import plain_console
from lpgnn_cli.signals import Interruption, StopFlag, exit_code
from lpgnn_cli.tracking.named import find_named
from lpgnn_cli.training.experiment import Experiment, claim, reopen_run, start_run

WITH_RESUME = ("resume", "epochs", "quiet")


def run(config: TrainConfig) -> float:
    """Train, and return its figure at the epochs that the protocol selects."""
    given = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    return RunSummary.read(train(config, given)).honest.figure.mean


def train(
    config: TrainConfig, given: Sequence[str], argv: Sequence[str] | None = None
) -> RunFolder:
    """Train what the config says, of which `given` was set by hand, and report; the run's folder.

    `argv` is the command line that would do the same, where the run was not started by one.
    """
    started = time.time()
    if config.resume is None:
        experiment = Experiment.prepare(config)
        folder, record = start_run(experiment)
        record.argv = record.argv if argv is None else list(argv)
        with folder.held():
            return _train(experiment, folder, record, config.quiet, started)
    epochs = _epochs_override(config, given)
    resumed = _find(config.resume)
    with resumed.held():
        folder, record, experiment = reopen_run(str(resumed.path), epochs)
        return _train(experiment, folder, record, config.quiet, started)


def _find(run: str) -> RunFolder:
    """By its path or its name."""
    path = Path(run)
    is_name = path.name == run and not path.exists()
    return RunFolder.open(find_named(run) if is_name else path)


def _train(
    experiment: Experiment, folder: RunFolder, record: RunRecord, quiet: bool, started: float
) -> RunFolder:
    """The run itself, once it is ours."""
    console = plain_console()
    stop = StopFlag()
    try:
        claim(folder, record)
        if experiment.needs is not None and not quiet:
            console.print(f"Node batches need {experiment.needs}.")
        progress = make_progress(console, quiet)
        live = tracking.start(experiment.config.tracking, folder)
        observers = [progress] if live is None else [progress, live]
        compute(experiment, folder, record, observers, stop)
        closing_table(folder, console, time.time() - started)
    except (OSError, UserError) as error:
        raise _without_disk(error, folder, record) from error
    if record.state == INTERRUPTED:
        again = f"interrupted; {_resume(folder)}."
        raise RunFailed(again, folder.path, exit_code(Interruption(stop.number)))
    if record.state == FAILED:
        reason = record.reason.rstrip(".")
        raise RunFailed(f"{reason}. Put that right, then {_resume(folder)}.", folder.path)
    if record.state != FINISHED:
        reason = record.reason.rstrip(".")
        raise RunFailed(f"{reason}. What was computed is in {folder.path}.", folder.path)
    return folder


def _without_disk(error: OSError | UserError, folder: RunFolder, record: RunRecord) -> Exception:
    """A disk that is full or gone: what was saved is kept, as far as there is a place for it."""
    if not folder.path.is_dir():
        sentence = f"{folder.path} was removed while the run was going on; start it again."
        return RunFailed(sentence, folder.path)
    if isinstance(error, BrokenPipeError | UserError):
        return error
    record.state, record.reason = FAILED, describe_os_error(error)
    record.ended = time.time()
    with suppress(OSError):
        folder.write_record(record)
    sentence = f"{record.reason}. Put that right, then {_resume(folder)}."
    return RunFailed(sentence, folder.path)


def _resume(folder: RunFolder) -> str:
    return f"go on with `lpgnn train resume={folder.path}`"


def _epochs_override(config: TrainConfig, given: Sequence[str]) -> int | None:
    """With resume=, only some settings may be given: the run has its own."""
    keys = given_keys(given)
    others = [key for key in keys if key not in WITH_RESUME]
    if others:
        raise UserError(
            f"resume= goes on with the settings of the run: leave out {', '.join(others)} "
            f"(only epochs= and quiet= may be given)."
        )
    return config.epochs if "epochs" in keys else None
