"""A sweep in MLflow: a parent run with its jobs beneath it, all sent by one process.

A process for each job would spend more on importing mlflow than short jobs spend on training. Run
as a program, with the arguments of `tracking.follow`, this follows a live sweep.
"""

from __future__ import annotations

import os
import sys

from lpgnn_cli.runfolder import RUNNING, RunFolder
from lpgnn_cli.sweeps.jobs import read_record, read_table
from lpgnn_cli.tracking import follow
from lpgnn_cli.tracking.mirror import Mirror, Sent
from lpgnn_cli.tracking.state import read_state


def mirror_of(run: RunFolder, uri: str, experiment: str) -> Mirror | SweepMirror:
    """What sends a run folder, that of a sweep with all its jobs."""
    if run.read_record().command == "sweep":
        return SweepMirror(run, uri, experiment)
    return Mirror(run, uri, experiment)


class SweepMirror:
    """The sweep's own folder and those of its jobs; `send` as often as wished."""

    def __init__(self, sweep: RunFolder, uri: str, experiment: str) -> None:
        self._sweep = sweep
        self._uri = uri
        self._experiment = experiment
        self._own = Mirror(sweep, uri, experiment)
        self._jobs: dict[str, Mirror] = {}
        # Time of the record of each job all of which was sent.
        self._complete: dict[str, int] = {}

    def send(self, *, ended: bool) -> Sent:
        """One pass over everything; raises what the store raises, at the first job it fails for."""
        own = self._own.send(ended=ended)
        metrics, artifacts = own.metrics, own.artifacts
        for job in read_table(self._sweep.path):
            sent = self._send_job(job.key, job.run)
            metrics, artifacts = metrics + sent.metrics, artifacts + sent.artifacts
        return Sent(metrics, artifacts)

    def _send_job(self, key: str, run: RunFolder) -> Sent:
        record = read_record(run)
        if record is None or not record.units:
            return Sent(0, 0)
        stamp = run.record_path.stat().st_mtime_ns
        if self._complete.get(key) == stamp or self._was_sent(run, stamp):
            return Sent(0, 0)
        state = read_state(self._sweep)
        parent = state.parent.run_id if state else None
        mirror = self._jobs.setdefault(key, Mirror(run, self._uri, self._experiment, parent))
        over = run.actual_state(record) != RUNNING
        sent = mirror.send(ended=over)
        if over:
            self._complete[key] = stamp
            del self._jobs[key]
        # Whoever waits for the sweep to be sent sees that it gets on.
        os.utime(self._sweep.path / "tracking.json")
        return sent

    def _was_sent(self, run: RunFolder, stamp: int) -> bool:
        """By an earlier start of this sweep, or by another one that has the job too."""
        state = read_state(run)
        if state is None or not state.complete:
            return False
        if (state.uri, state.experiment) != (self._uri, self._experiment):
            return False
        return (run.path / "tracking.json").stat().st_mtime_ns > stamp


if __name__ == "__main__":
    sys.exit(follow.main(SweepMirror))
