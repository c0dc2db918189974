"""`lpgnn train`: compose, prepare, train every fold, report."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from lpgnn_cli import tracking
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.errors import RunFailed, UserError
from lpgnn_cli.reporting.progress import make_progress
from lpgnn_cli.reporting.train_table import closing_table
from lpgnn_cli.run import compute
from lpgnn_cli.runfolder import FINISHED, INTERRUPTED, RunFolder
from lpgnn_cli.runsummary import RunSummary
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
    console = Console()
    if config.resume is None:
        experiment = Experiment.prepare(config)
        folder, record = start_run(experiment)
        record.argv = record.argv if argv is None else list(argv)
    else:
        epochs = _epochs_override(config, given)
        folder, record, experiment = reopen_run(config.resume, epochs)
    claim(folder, record)

    progress = make_progress(console, config.quiet)
    live = tracking.start(experiment.config.tracking, folder)
    observers = [progress] if live is None else [progress, live]
    compute(experiment, folder, record, observers)
    closing_table(folder, console, time.time() - started)
    if record.state != FINISHED:
        farewell = _farewell(record.state, record.reason, str(folder.path))
        raise RunFailed(farewell, folder.path)
    return folder


def _epochs_override(config: TrainConfig, given: Sequence[str]) -> int | None:
    """With resume=, only some settings may be given: the run has its own."""
    keys = [word.split("=")[0].lstrip("+~") for word in given]
    others = [key for key in keys if key not in WITH_RESUME]
    if others:
        raise UserError(
            f"resume= goes on with the settings of the run: leave out {', '.join(others)} "
            f"(only epochs= and quiet= may be given)."
        )
    return config.epochs if "epochs" in keys else None


def _farewell(state: str, reason: str, folder: str) -> str:
    if state == INTERRUPTED:
        return f"interrupted; go on with `lpgnn train resume={folder}`."
    return f"{reason.rstrip('.')}. What was computed is in {folder}."
