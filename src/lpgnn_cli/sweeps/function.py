"""What every launcher runs: one job, from its lock to its result.

Whatever goes wrong is written into the job's folder before this returns, so that nothing depends
on how a launcher passes errors on.
"""

from __future__ import annotations

import math
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import FrameType
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from lpgnn_cli import locks
from lpgnn_cli.config.compose import to_typed
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.errors import UserError
from lpgnn_cli.names import as_name
from lpgnn_cli.run import compute
from lpgnn_cli.runfolder import (
    DIVERGED,
    FINISHED,
    INTERRUPTED,
    RUNNING,
    RunFolder,
    RunRecord,
)
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.signals import Interruption, StopFlag
from lpgnn_cli.sweeps.jobs import (
    BY_DIVERGENCE,
    BY_ERROR,
    BY_USER,
    LOST_TOO_OFTEN,
    Job,
    asked,
    fail,
    may_retry,
    note_failure,
    read_notes,
    read_record,
    read_table,
    write_notes,
)
from lpgnn_cli.sweeps.objective import search_value
from lpgnn_cli.sweeps.search import pruning_of
from lpgnn_cli.tracking import start as start_tracking
from lpgnn_cli.training.experiment import (
    Experiment,
    claim,
    reopen_run,
    start_run,
)
from lpgnn_cli.training.observer import Observer
from lpgnn_cli.tuning import tune_process

STOP_FILE = ".stop"


class JobFailed(RuntimeError):
    """A job that did not finish; its folder says why."""


@dataclass
class JobFunction:
    """Hydra's task function, in whichever process or on whichever machine."""

    # Folder of the sweep, and a word that is its own.
    sweep: Path
    token: str
    metric: str
    # The process in which an interrupted job ends the whole sweep; 0: jobs have their own.
    in_process: int
    fail_fast: bool
    retries: int
    # MLflow's id of the sweep, where each job sends its own results.
    parent_run_id: str | None = None
    mirrors_itself: bool = False

    def __call__(self, config: DictConfig) -> float:
        tune_process()
        job = self._find()
        stop = StopFlag()
        with requeueing(stop) as requeue, self._locked(job) as locked:
            if not locked:
                return math.nan
            record = read_record(job.run)
            if record is None or record.state != FINISHED:
                record = self._attempt(job, to_typed(config), stop)
        if record.state == INTERRUPTED:
            requeue()
        # Also where the job was done before it could stop: the signal meant the sweep.
        if stop.raised and os.getpid() == self.in_process and not read_notes(job.run).pruned:
            raise Interruption(stop.number)
        if record.state == INTERRUPTED:
            return math.nan
        if record.state != FINISHED:
            if self.fail_fast and not may_retry(read_notes(job.run), self.retries):
                (self.sweep / STOP_FILE).touch()
            raise JobFailed(record.reason)
        return search_value(RunSummary.read(job.run), self.metric)

    def _find(self) -> Job:
        # A later start of the sweep, in another manner, may have written the table again.
        overrides = asked(HydraConfig.get().overrides.task)
        return next(job for job in read_table(self.sweep) if asked(job.overrides) == overrides)

    @contextmanager
    def _locked(self, job: Job) -> Iterator[bool]:
        """The job is ours; False where the sweep stops before that."""
        job.run.path.mkdir(parents=True, exist_ok=True)
        locked = False
        with ExitStack() as stack:
            while not locked and not (self.sweep / STOP_FILE).exists():
                with suppress(locks.Busy):
                    stack.enter_context(locks.held(job.run.lock_path))
                    locked = True
            yield locked

    def _attempt(self, job: Job, config: TrainConfig, stop: StopFlag) -> RunRecord:
        run = job.run
        self._note_start(run)
        try:
            run, record, experiment = self._open(job, as_job(config, job))
            record.parent_run_id = self.parent_run_id
            claim(run, record)
            live = start_tracking(experiment.config.tracking, run) if self.mirrors_itself else None
            pruning = pruning_of(self.sweep, job, stop)
            observers: list[Observer] = [o for o in (pruning, live) if o is not None]
            compute(experiment, run, record, observers, stop)
        except Exception as error:
            (run.path / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
            known = isinstance(error, UserError)
            reason = str(error) if known else f"{type(error).__name__}: {error}"
            fail(job, BY_USER if known else BY_ERROR, " ".join(reason.split()))
            return run.read_record()
        if record.state not in (FINISHED, INTERRUPTED):
            note_failure(run, BY_DIVERGENCE if record.state == DIVERGED else BY_ERROR)
        return record

    def _note_start(self, run: RunFolder) -> None:
        record, notes = read_record(run), read_notes(run)
        if record is not None and record.state == RUNNING:
            if notes.sweep != self.token:
                notes.lost += 1
            record.state = INTERRUPTED
            run.write_record(record)
        notes.sweep, notes.pruned = self.token, 0
        notes.visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES")
        write_notes(run, notes)

    def _open(self, job: Job, config: TrainConfig) -> tuple[RunFolder, RunRecord, Experiment]:
        run = job.run
        if read_notes(run).lost >= LOST_TOO_OFTEN:
            raise RuntimeError(f"its process was lost {LOST_TOO_OFTEN} times")
        record = read_record(run)
        if record is not None and record.units:
            return reopen_run(str(run.path), None)
        experiment = Experiment.prepare(config)
        run, record = start_run(experiment, run)
        record.argv = ["train", *job.overrides]
        return run, record, experiment


def as_job(config: TrainConfig, job: Job) -> TrainConfig:
    """What `lpgnn train` would run: one unit after another, as other jobs run beside it."""
    own = {f.name: getattr(config, f.name) for f in fields(TrainConfig)}
    own["name"] = config.name or as_name(job.title)
    own["protocol"] = replace(config.protocol, workers="1")
    return TrainConfig(**own)


@contextmanager
def requeueing(stop: StopFlag) -> Iterator[Callable[[], None]]:
    """Before a time limit submitit sends SIGUSR2: the job saves, and then is queued again.

    The value is to be called once the job is saved; it does nothing where there was no such signal.
    """
    queued_again: list[tuple[int, FrameType | None]] = []
    try:
        before: Any = signal.getsignal(signal.SIGUSR2)
        if not callable(before):
            raise ValueError

        def handle(number: int, frame: FrameType | None) -> None:
            queued_again.append((number, frame))
            stop.raised = True

        signal.signal(signal.SIGUSR2, handle)
    except ValueError:  # no submitit above us, or not the main thread
        yield lambda: None
        return

    def requeue() -> None:
        if queued_again:
            before(*queued_again[0])

    try:
        yield requeue
    finally:
        signal.signal(signal.SIGUSR2, before)
