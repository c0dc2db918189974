"""`slurm.json` of a sweep that was left to its cluster: which Slurm job has which of its jobs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED
from lpgnn_cli.stored import read_json
from lpgnn_cli.sweeps.jobs import BY_DEATH, Job, fail, state_of
from lpgnn_cli.sweeps.slurm import queue

FILE = "slurm.json"
# Between a job's end and the moment its result is seen on a shared folder.
GRACE_SECONDS = 2.0


def remember(sweep: Path, ids: Mapping[str, str]) -> None:
    """Ids in Slurm by the keys of jobs; what was submitted before stays known."""
    write_atomically(sweep / FILE, json.dumps({**submitted(sweep), **ids}, indent=1))


def submitted(sweep: Path) -> dict[str, str]:
    path = sweep / FILE
    return {key: str(value) for key, value in read_json(path).items()} if path.is_file() else {}


def in_queue(sweep: Path) -> dict[str, str] | None:
    """Those that wait or run; None where the queue cannot be asked at the moment."""
    ids = submitted(sweep)
    if not ids:
        return {}
    known = queue(list(ids.values()))
    return None if known is None else {k: slurm for k, slurm in ids.items() if slurm in known}


def settle_lost(sweep: Path, jobs: Sequence[Job]) -> None:
    """A job that Slurm no longer has and that left no result has failed: it is written down."""
    ids = submitted(sweep)
    queued = in_queue(sweep)
    if queued is None:
        return
    lost = [job for job in jobs if job.key in ids.keys() - queued.keys() and not _ended(job)]
    if lost:
        time.sleep(GRACE_SECONDS)
    for job in lost:
        if not _ended(job) and not job.run.is_held:
            fail(job, BY_DEATH, f"Slurm job {ids[job.key]} ended without a result")


def _ended(job: Job) -> bool:
    return state_of(job.run)[0] in (FINISHED, FAILED, DIVERGED)
