"""Between Hydra's sweeper, which says which jobs, and its launcher, which runs them.

The supervisor takes the jobs that are finished from their folders, has the launcher run the others,
writes down what became of those whose process died, and tries again what may be tried again. It
believes the folders alone, so it serves every launcher, however that one ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException
from omegaconf import DictConfig

from lpgnn_cli.config.compose import to_typed, without_hydra
from lpgnn_cli.config.explain import explain
from lpgnn_cli.config.hydra_internals import ConfigLoader
from lpgnn_cli.config.sweep import SweepSettings
from lpgnn_cli.errors import RunFailed, UserError
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED, INTERRUPTED, RUNNING
from lpgnn_cli.sweeps.board import Board
from lpgnn_cli.sweeps.function import STOP_FILE, JobFunction
from lpgnn_cli.sweeps.identity import identify
from lpgnn_cli.sweeps.jobs import (
    BY_DEATH,
    PENDING,
    Job,
    fail,
    is_to_run,
    may_retry,
    read_notes,
    read_record,
    state_of,
    write_table,
)
from lpgnn_cli.sweeps.launchers import Launches, Submits, WatchesWorkers
from lpgnn_cli.sweeps.nested import OuterFold, assessing_overrides
from lpgnn_cli.sweeps.objective import search_value
from lpgnn_cli.sweeps.sample import axis_values, sampled
from lpgnn_cli.sweeps.submitted import in_queue, remember

WAIT_SECONDS = 0.5


class DryRun(Exception):
    """The jobs are planned, and that is all that was asked for."""


class Detached(Exception):
    """So many jobs are in the queue of a cluster, which goes on without us."""

    def __init__(self, jobs: int) -> None:
        super().__init__(f"{jobs} jobs submitted")
        self.jobs = jobs


@dataclass
class Supervisor:
    """One start of a sweep."""

    folder: Path
    settings: SweepSettings
    axes: Sequence[str]
    loader: ConfigLoader
    master: DictConfig
    function: JobFunction
    board: Board
    # Called when jobs are known and before they are written down and started, if they are.
    planned: Callable[[], None] = lambda: None
    to_run: dict[str, Job] = field(default_factory=dict)
    # The one that the sweeper's jobs went to.
    launcher: Launches | None = None

    def __call__(self, config: DictConfig) -> None:
        raise AssertionError("launchers get the job function, never the supervisor")

    def launch(
        self, job_overrides: Sequence[Sequence[str]], first: int, launcher: Launches
    ) -> list[JobReturn]:
        """What Hydra's sweeper asks for; failed jobs return nothing, which no sweeper stops at."""
        self.launcher = launcher
        numbered = list(enumerate(job_overrides, first))
        chosen = sampled(numbered, self.settings, self.axes)
        self.board.drawn_from = len(numbered) if len(chosen) < len(numbered) else 0
        self.board.best_of = self.settings.best_of
        jobs = [self._plan(number, o) for number, o in chosen]
        self._carry_out(jobs, launcher)
        return [self._answer(job) for job in jobs]

    def assess(self, choices: Sequence[OuterFold]) -> None:
        """Train the choice of every outer fold again; numbers go on after those of the sweeper."""
        assert self.launcher is not None
        first = 1 + max(job.number for job in self.board.jobs)
        jobs = [
            replace(
                self._plan(number, assessing_overrides(outer.chosen.job, outer.fold)),
                fold=outer.fold,
            )
            for number, outer in enumerate(choices, first)
        ]
        self._carry_out(jobs, self.launcher)

    def _carry_out(self, jobs: Sequence[Job], launcher: Launches) -> None:
        queued = self._left_in_queue()
        self.board.add(list(jobs))
        unique = list({job.key: job for job in jobs}.values())
        todo = [job for job in unique if self._is_to_run(job) and job.key not in queued]
        self.to_run.update({job.key: job for job in todo})
        for view in self.board.views.values():
            view.found = view.job.key not in self.to_run
        self.board.refresh()
        if self.settings.dry_run:
            raise DryRun
        self.planned()
        write_table(self.folder, self.board.jobs)
        self._link(jobs)
        if self.settings.detach:
            raise Detached(self._submit(todo, launcher))
        self._prepare(launcher)
        for _ in range(self.settings.retries + 1):
            self._run(todo, launcher)
            todo = [job for job in todo if self._is_to_retry(job)]
            if not todo or self.stopping():
                break
        self.board.refresh()

    def stopping(self) -> bool:
        return (self.folder / STOP_FILE).exists()

    def stop(self) -> None:
        (self.folder / STOP_FILE).touch()

    def _left_in_queue(self) -> dict[str, str]:
        """Jobs that an earlier, detached start left with Slurm; they are not submitted twice."""
        queued = in_queue(self.folder)
        if queued is None:
            raise UserError("Slurm's queue, which has jobs of this sweep, cannot be asked now.")
        if queued and not (self.settings.detach or self.settings.dry_run):
            raise UserError(
                f"{len(queued)} jobs of this sweep are in Slurm's queue: lpgnn status "
                f"{self.folder.name} shows them, and scancel ends them."
            )
        return queued

    def _submit(self, todo: Sequence[Job], launcher: Launches) -> int:
        assert isinstance(launcher, Submits)
        if todo:
            ids = launcher.submit([list(job.overrides) for job in todo], todo[0].number)
            remember(self.folder, {job.key: i for job, i in zip(todo, ids, strict=True)})
        return len(todo)

    def _plan(self, number: int, overrides: Sequence[str]) -> Job:
        words = tuple(overrides)
        try:
            composed = self.loader.load_sweep_config(self.master, list(words))
        except HydraException as error:
            raise UserError(explain(error)) from error
        task = tuple(composed.hydra.overrides.task)
        try:
            key = identify(to_typed(without_hydra(composed)))
        except UserError as error:
            raise UserError(f"{error} (in the combination {' '.join(words)})") from error
        values = axis_values(words, self.axes)
        return Job(number, key, task, values, config_dir=self.loader.own_folder)

    def _link(self, jobs: Sequence[Job]) -> None:
        """The run folders of the jobs, to be found from the folder of the sweep."""
        links = self.folder / "jobs"
        links.mkdir(exist_ok=True)
        for job in jobs:
            title = job.title.replace(os.sep, "_")[:120]
            link = links / f"{job.number:04d}-{title}"
            target = os.path.relpath(job.run.path, links)
            if not link.is_symlink() or os.readlink(link) != target:
                link.unlink(missing_ok=True)
                link.symlink_to(target)

    def _is_to_run(self, job: Job) -> bool:
        return is_to_run(job.run, self.settings.retries, self.settings.retry_failed)

    def _is_to_retry(self, job: Job) -> bool:
        record = read_record(job.run)
        bad = record is not None and record.state in (FAILED, DIVERGED)
        return bad and may_retry(read_notes(job.run), self.settings.retries)

    def _prepare(self, launcher: Launches) -> None:
        if isinstance(launcher, WatchesWorkers):
            launcher.died = self._died
            launcher.stopping = self.stopping

    def _died(self, overrides: Sequence[str], reason: str) -> None:
        words = self.loader.load_sweep_config(self.master, list(overrides)).hydra.overrides.task
        job = next(job for job in self.to_run.values() if job.overrides == tuple(words))
        self._settle(job, reason)

    def _settle(self, job: Job, reason: str) -> None:
        """A job whose process is gone while the sweep lives has failed."""
        record = read_record(job.run)
        if record is not None and record.state in (FINISHED, INTERRUPTED):
            return
        if record is not None and record.state in (FAILED, DIVERGED) and self._was_ours(job):
            return
        fail(job, BY_DEATH, reason)
        if self.settings.fail_fast and not self._is_to_retry(job):
            self.stop()

    def _was_ours(self, job: Job) -> bool:
        return read_notes(job.run).sweep == self.function.token

    def _run(self, todo: Sequence[Job], launcher: Launches) -> None:
        """Launch until every job has ended; a launcher that breaks down is started again.

        A broken pool takes down the jobs that were in flight, and one of them broke it: they are
        run one by one, so that the one that breaks it again is known.
        """
        waiting = list(todo)
        alone = False
        while waiting and not self.stopping():
            batch, waiting = (waiting[:1], waiting[1:]) if alone else (waiting, [])
            error = self._launch(batch, launcher)
            self._await_others(batch)
            if error is None:
                self._settle_all(batch, "its process ended without a result")
                continue
            in_flight = [job for job in batch if self._is_lost(job)]
            untouched = [job for job in batch if not self._was_touched(job)]
            if len(in_flight) == 1:
                self._settle(in_flight[0], _first_line(error))
            elif in_flight:
                alone = True
            elif len(untouched) == len(batch):
                raise RunFailed(f"the launcher cannot run jobs: {_first_line(error)}") from error
            if not alone:
                waiting = untouched
            else:
                waiting = [*(in_flight if len(in_flight) > 1 else []), *waiting, *untouched]

    def _launch(self, batch: Sequence[Job], launcher: Launches) -> Exception | None:
        try:
            launcher.launch([list(job.overrides) for job in batch], batch[0].number)
        except (UserError, RunFailed):
            raise
        except Exception as error:
            return error
        return None

    def _await_others(self, batch: Sequence[Job]) -> None:
        """A launcher that broke down may leave jobs behind that still run."""
        while any(_claims_to_run(job) and job.run.is_held for job in batch):
            time.sleep(WAIT_SECONDS)

    def _settle_all(self, batch: Sequence[Job], reason: str) -> None:
        for job in batch:
            state, _ = state_of(job.run)
            if self._is_lost(job) or (state == PENDING and not self.stopping()):
                self._settle(job, reason)

    def _is_lost(self, job: Job) -> bool:
        return _claims_to_run(job) and not job.run.is_held

    def _was_touched(self, job: Job) -> bool:
        """Whether this start of the sweep has begun it."""
        return read_record(job.run) is not None and self._was_ours(job)

    def _answer(self, job: Job) -> JobReturn:
        view = self.board.views[job.key]
        answer = JobReturn(overrides=list(job.overrides), status=JobStatus.COMPLETED)
        if view.state == FINISHED:
            answer.return_value = search_value(view.summary, self.settings.metric)
        return answer


def _claims_to_run(job: Job) -> bool:
    record = read_record(job.run)
    return record is not None and record.state == RUNNING


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
