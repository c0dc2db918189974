"""`tracking.json`: what of a run folder MLflow has.

Whoever sends holds the folder's lock, reads the state, and writes it after every acknowledged
batch. What was sent but not acknowledged is sent again: MLflow's stores keep one of several equal
(metric, step, time, value) rows.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.locks import held
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.stored import read_json, record_from

LOCK_SECONDS = 20.0
OK, UNREACHABLE = "ok", "unreachable"


@dataclass
class MirroredRun:
    """One MLflow run, the parent or the child of a unit, and what it was sent."""

    run_id: str = ""
    rows: int = 0
    # Of the rows sent, without their times: a resumed run may have written others in their place.
    digest: str = ""
    params: bool = False
    tags: dict[str, str] = field(default_factory=dict)
    # Digest of the results that were sent.
    results: str = ""
    # File in the run folder -> its size and time when it was sent.
    artifacts: dict[str, str] = field(default_factory=dict)
    status: str = ""
    inputs: bool = False
    # Its MLflow model, and sizes and times of the files that this was made of.
    model: str = ""
    model_files: str = ""
    registered: str = ""

    def forget(self) -> None:
        """As if nothing had been sent yet."""
        vars(self).update(vars(MirroredRun()))


@dataclass
class TrackingState:
    """Where the run is mirrored to and how far the mirror got."""

    uri: str
    experiment: str
    parent: MirroredRun = field(default_factory=MirroredRun)
    units: dict[str, MirroredRun] = field(default_factory=dict)
    # Everything that the folder of an ended run holds was sent.
    complete: bool = False
    state: str = OK
    reason: str = ""


def lock(run: RunFolder) -> AbstractContextManager[None]:
    """For those who send; `Busy` where another one does not come to an end."""
    return held(run.path / ".tracking.lock", wait=LOCK_SECONDS)


def read_state(run: RunFolder) -> TrackingState | None:
    path = run.path / "tracking.json"
    if not path.is_file():
        return None
    return record_from(TrackingState, read_json(path), path)


def write_state(run: RunFolder, state: TrackingState) -> None:
    write_atomically(run.path / "tracking.json", json.dumps(asdict(state), indent=1))
