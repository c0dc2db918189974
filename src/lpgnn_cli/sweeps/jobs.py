"""A job and its folder, which is found by what the job computes.

    <runs>/sweep/jobs/<identity>/     the run folder, as `lpgnn train` leaves it
        job.json                      JobNotes: how often it failed, which GPU it had, ...
        error.txt                     traceback of what happened outside of the units
        .lock                         held by the process that computes it

The lock tells the living from the dead: the system frees it when its process ends, however it ends.
Under a sweep that lives, a job whose process is gone has failed, and the sweep writes that down.
A job that still says "running" while its lock is free was in flight when the sweep itself died: it
was interrupted, and goes on.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.errors import UserError
from lpgnn_cli.names import checked_name
from lpgnn_cli.runfolder import (
    DIVERGED,
    FAILED,
    FINISHED,
    INTERRUPTED,
    RunFolder,
    RunRecord,
    runs_root,
)
from lpgnn_cli.stored import read_json, read_json_list, record_from
from lpgnn_cli.version import __version__

PENDING = "pending"
# Interrupted by a search that saw nothing in it; one who needs it all the same goes on with it.
PRUNED = "pruned"
# Overrides that say how a sweep runs, not what it asks.
MANNER = (
    "sweep.",
    "hydra/launcher",
    "hydra.launcher",
    "hydra.sweeper.n_",
    "tracking",
    "quiet",
    "figures",
)
# Why a job failed: what may end otherwise next time, and what may not.
BY_ERROR, BY_USER, BY_DEATH, BY_DIVERGENCE = "error", "user", "death", "divergence"
# A job whose process vanished this often together with the sweep is taken to be the cause.
LOST_TOO_OFTEN = 3


@dataclass
class JobNotes:
    """`job.json`: what the run folder has no place for."""

    failures: int = 0
    cause: str = ""
    lost: int = 0
    # The sweep that started it last: a cluster that queues a job again brings the same word.
    sweep: str = ""
    visible_devices: str | None = None
    # The epoch after which a search stopped it; 0: none did.
    pruned: int = 0


@dataclass(frozen=True)
class Job:
    """One combination of a sweep."""

    number: int
    key: str
    # All overrides of the job, and of these the ones that the sweep varies.
    overrides: tuple[str, ...]
    values: dict[str, str] = field(default_factory=dict)
    # The outer fold that it assesses the choice of, under `protocol=nested`.
    fold: int | None = None
    # The user's own folder of options, where there is one.
    config_dir: str | None = None

    @property
    def run(self) -> RunFolder:
        return RunFolder(jobs_root() / checked_name("job", self.key[:20]))

    @property
    def title(self) -> str:
        values = ",".join(f"{axis}={value}" for axis, value in self.values.items()) or "job"
        return values if self.fold is None else f"fold-{self.fold:02d},{values}"


def asked(words: Iterable[str]) -> tuple[str, ...]:
    """Those of the overrides that say what is to be computed."""
    return tuple(word for word in words if not word.lstrip("+~").startswith(MANNER))


def jobs_root() -> Path:
    return runs_root() / "sweep" / "jobs"


def sweep_folder(name: str) -> Path:
    if name == "jobs":
        raise UserError("sweep.name=jobs cannot name a folder: the jobs of all sweeps are there.")
    return runs_root() / "sweep" / checked_name("sweep.name", name)


def find_sweep(given: str) -> Path:
    """The folder of a sweep that is there, by its name or its path."""
    return Path(given) if (Path(given) / "jobs.json").is_file() else sweep_folder(given)


def read_record(run: RunFolder) -> RunRecord | None:
    return run.read_record() if run.record_path.is_file() else None


def read_notes(run: RunFolder) -> JobNotes:
    path = run.path / "job.json"
    if not path.is_file():
        return JobNotes()
    return record_from(JobNotes, read_json(path), path)


def write_notes(run: RunFolder, notes: JobNotes) -> None:
    write_atomically(run.path / "job.json", json.dumps(asdict(notes), indent=1))


def state_of(run: RunFolder) -> tuple[str, str]:
    """State and reason of a job that this sweep is not computing at the moment."""
    record = read_record(run)
    if record is None:
        return PENDING, ""
    if run.actual_state(record) != record.state:
        return INTERRUPTED, "its process is gone"
    return record.state, record.reason


def fail(job: Job, cause: str, reason: str) -> None:
    """Write down that a job failed; its folder may not even have a record yet."""
    run = job.run
    run.path.mkdir(parents=True, exist_ok=True)
    record = read_record(run) or RunRecord(
        id=uuid.uuid4().hex,
        command="train",
        name=job.title,
        argv=["train", *job.overrides],
        version=__version__,
        started=time.time(),
    )
    record.state = DIVERGED if cause == BY_DIVERGENCE else FAILED
    record.reason, record.ended = reason, time.time()
    run.write_record(record)
    note_failure(run, cause)


def note_failure(run: RunFolder, cause: str) -> None:
    notes = read_notes(run)
    notes.failures, notes.cause = notes.failures + 1, cause
    write_notes(run, notes)


def note_pruning(run: RunFolder, epoch: int) -> None:
    notes = read_notes(run)
    notes.pruned = epoch
    write_notes(run, notes)


def is_to_run(run: RunFolder, retries: int, retry_failed: bool) -> bool:
    """Whether a sweep that comes by computes this job, or takes what is there."""
    state, _ = state_of(run)
    if state == FINISHED:
        return False
    if state not in (FAILED, DIVERGED):
        return True
    notes = read_notes(run)
    # What the user had to put right may have been put right.
    return retry_failed or notes.cause == BY_USER or may_retry(notes, retries)


def may_retry(notes: JobNotes, retries: int) -> bool:
    return notes.cause not in (BY_DIVERGENCE, BY_USER) and notes.failures <= retries


def write_table(sweep: Path, jobs: list[Job]) -> None:
    """`jobs.json`: which combinations there are and where each is kept."""
    write_atomically(sweep / "jobs.json", json.dumps([asdict(job) for job in jobs], indent=1))


def read_table(sweep: Path) -> list[Job]:
    path = sweep / "jobs.json"
    if not path.is_file():
        return []
    return [record_from(Job, row, path) for row in read_json_list(path)]
