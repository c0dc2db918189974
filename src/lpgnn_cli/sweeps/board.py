"""Where all jobs of a sweep are, read from their folders."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import metric_text
from lpgnn_cli.metrics import ACCURACY, Metric, larger_is_better
from lpgnn_cli.runfolder import FINISHED, INTERRUPTED, RUNNING
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.sweeps.jobs import PENDING, PRUNED, Job, read_notes, read_record
from lpgnn_cli.sweeps.objective import metric_of, objective


@dataclass
class View:
    """A job as it is now."""

    job: Job
    state: str = PENDING
    reason: str = ""
    summary: RunSummary = field(default_factory=RunSummary)
    started: float = 0.0
    # Whether it had finished before this sweep came by.
    found: bool = False
    stamp: int = 0

    def value(self, metric: str) -> float:
        return objective(self.summary, metric) if self.state == FINISHED else math.nan


class Board:
    """All jobs in their order; `refresh` reads what has changed."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        # Under `protocol=nested` jobs select by inner validation parts, and as many as there are
        # outer folds come later: those that assess the choices.
        self.outer_folds = 0
        # How many combinations there are where only a sample of them is trained, else 0.
        self.drawn_from = 0
        # The sweep whose best ones they are, where they are not drawn at random.
        self.best_of: str | None = None
        self.views: dict[str, View] = {}
        self._lock = threading.Lock()

    def add(self, jobs: list[Job]) -> None:
        with self._lock:
            for job in jobs:
                self.views.setdefault(job.key, View(job))

    @property
    def jobs(self) -> list[Job]:
        return [view.job for view in self.views.values()]

    def refresh(self) -> None:
        """Read what has changed in the folders."""
        with self._lock:
            for view in self.views.values():
                _refresh(view)

    def of_state(self, *states: str) -> list[View]:
        return [view for view in list(self.views.values()) if view.state in states]

    def candidates(self) -> list[View]:
        """The jobs that are compared with each other."""
        return [view for view in list(self.views.values()) if view.job.fold is None]

    def assessments(self) -> list[View]:
        """Those that assess the choices of outer folds."""
        return [view for view in list(self.views.values()) if view.job.fold is not None]

    @property
    def expected(self) -> int:
        """How many jobs there will have been in the end."""
        return len(self.candidates()) + max(self.outer_folds, len(self.assessments()))

    def value(self, view: View) -> float:
        """What the job is sorted by, which is one figure for all of them: none for a job that is
        judged by another."""
        return view.value(self.metric_name())

    def text(self, value: float) -> str:
        """Such a value for people."""
        return metric_text(self.metric_name(), value)

    def ranked(self) -> list[View]:
        """Finished jobs, the best first; the order of the sweep decides between equals."""
        done = [view for view in self.candidates() if view.state == FINISHED]
        sign = -1 if self.larger_is_better() else 1

        def rank(view: View) -> tuple[float, int]:
            value = self.value(view)
            return (sign * value if math.isfinite(value) else math.inf, view.job.number)

        return sorted(done, key=rank)

    def best(self) -> View | None:
        ranked = self.ranked()
        return ranked[0] if ranked and math.isfinite(self.value(ranked[0])) else None

    def metric_name(self) -> str:
        """What jobs are sorted by, as it is stored."""
        return metric_of(self.metric, self.judge())

    def judge(self) -> Metric:
        """What the runs are judged by."""
        done = self.of_state(FINISHED)
        return done[0].summary.metric if done else ACCURACY

    def larger_is_better(self) -> bool:
        return larger_is_better(self.metric_name())


def _refresh(view: View) -> None:
    run = view.job.run
    try:
        stamp = run.record_path.stat().st_mtime_ns
        if stamp == view.stamp and view.state != RUNNING:
            return
        record = read_record(run)
        view.summary = RunSummary.read(run)
    except (OSError, UserError):
        return  # not there yet, or a shared folder in the midst of an update: next time
    assert record is not None
    view.stamp, view.state, view.reason = stamp, run.actual_state(record), record.reason
    if view.state == INTERRUPTED and (epoch := read_notes(run).pruned):
        view.state, view.reason = PRUNED, f"after epoch {epoch}"
    view.started = record.started
