"""What a run leaves behind: the run folder is the truth, everything else mirrors it.

    config.yaml               the composed config
    data.json                 what it was trained on: counts, fingerprints, a small graph as example
    run.json                  RunRecord: what ran, on what, in which state
    units/<unit>/metrics.csv  one row per epoch: epoch, time (Unix milliseconds), all metrics
    units/<unit>/result.json  UnitResult
    units/<unit>/*.pt         checkpoints: last.pt, selected.pt (by validation), best_on_test.pt (if
                              asked for)
    units/<unit>/rows/        arrays of checkpoints that are too large for memory
    units/<unit>/model.pt     of a finished unit: the network that its result is of, as a checkpoint
                              without the states and optimisers of training
    units/<unit>/predictions.csv  item, target, predicted, probability, violation, probabilities
    units/<unit>/influence.csv  how much the label of a node counts, by hops; of the first unit
    units/<unit>/states.npz   states over the epochs, where the last layer has 2 dimensions
    curves.csv                mean and std over units, one row per epoch
    folds.csv                 one row per unit
    summary.json              what is reported: RunSummary, EvalSummary, or the summary of a sweep
    figures/                  pictures
    report.md                 the closing table and the pictures
    tracking.json             what of all this MLflow has
    .lock                     held by the process that computes the run; each unit has one, too

A unit is one fold with one seed: what runs independently of everything else.
"""

from __future__ import annotations

import csv
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from lpgnn_cli import locks
from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import EPOCH, TEST, TIME, TRAIN
from lpgnn_cli.names import checked_name
from lpgnn_cli.stored import read_json, record_from

LOCK = ".lock"
RUNNING, FINISHED, INTERRUPTED, DIVERGED, FAILED = (
    "running",
    "finished",
    "interrupted",
    "diverged",
    "failed",
)
STATES = (RUNNING, FINISHED, INTERRUPTED, DIVERGED, FAILED)
# The year 5000: a time beyond it is no time.
LATEST = 1e11


# Checkpoints: where training goes on; what a validation part selected; and, only where it was asked
# for, what test labels chose.
LAST, SELECTED, BEST_ON_TEST = "last.pt", "selected.pt", "best_on_test.pt"
# The network alone, for those who predict; MLflow models have the same file.
MODEL = "model.pt"

# Of a unit: how much the label of a node counts, by hops.
INFLUENCE = "influence.csv"

# What stored names begin with. At epochs that no test part has chosen: the test phase from zero,
# and the states that were carried along through training. Chosen on the test parts, one epoch for
# all units: the curves of training, and the test phase from zero. Each unit's own best epoch.
HONEST, PERSISTENT = "honest", "persistent"
OPTIMISTIC, OPTIMISTIC_FROM_ZERO = "cv", "cv_from_zero"
PER_FOLD_MAXIMUM = "per_fold_max"
# Of checkpoints that are scored again.
RESCORED = "eval"


class Rule(StrEnum):
    """How an epoch is selected, whose metrics are then reported; the text is what is stored."""

    LAST_EPOCH = "last epoch"
    VALIDATION_LOSS = "validation loss"
    VALIDATION_ACCURACY = "validation accuracy"
    VALIDATION_METRIC = "validation metric"
    # Also the last epoch, of the training accuracy: there is nothing to test on.
    ALL_SUPERVISED = "train accuracy: all nodes are supervised"
    # The epoch that is best on average over the test parts of all units: optimistic.
    BEST_MEAN_EPOCH = "best mean epoch"
    # The epoch that is best on its own test part, unit by unit: more optimistic.
    BEST_OWN_EPOCH = "best epoch of each fold"
    # The one that a checkpoint, scored again, was saved at.
    CHECKPOINT = "checkpoint"
    # Of a unit that got nowhere.
    NONE = ""

    @classmethod
    def by_validation(cls, select: str) -> Rule:
        return cls(f"validation {'metric' if select == 'auto' else select}")

    @property
    def is_by_validation(self) -> bool:
        return self in (Rule.VALIDATION_LOSS, Rule.VALIDATION_ACCURACY, Rule.VALIDATION_METRIC)


@dataclass(frozen=True)
class Unit:
    """One fold with one seed."""

    name: str
    fold: int
    seed: int

    def __post_init__(self) -> None:
        checked_name("unit", self.name)


@dataclass
class RunRecord:
    """`run.json`: what ran, on what, and how far it got."""

    id: str
    command: str
    name: str
    argv: list[str]
    version: str
    started: float
    state: str = RUNNING
    git_commit: str | None = None
    device: str = ""
    segment_backend: str = ""
    dataset: str = ""
    dataset_fingerprint: str = ""
    split_fingerprint: str = ""
    units: list[Unit] = field(default_factory=list)
    ended: float | None = None
    reason: str = ""
    # Which process computes it; whether that one still does, the lock of the folder tells.
    pid: int = 0
    host: str = ""
    # The MLflow run it belongs to, where it is one of several.
    parent_run_id: str | None = None
    # What it was computed with: python, torch, numpy, ...
    versions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_state(self.state)
        for moment in (self.started, self.ended or 0.0):
            if not 0 <= moment < LATEST:
                raise UserError(f"{moment:g} is not a time.")


@dataclass
class UnitResult:
    """`result.json` of a unit. `metrics` are those that were logged in the epoch `rule` selects."""

    unit: str
    state: str
    epochs: int
    selected_epoch: int
    rule: Rule
    metrics: dict[str, float]
    # Of computing, in all epochs: on one thread of a CPU, the processor's.
    seconds: float
    reason: str = ""
    # The scored part with the weights of that epoch, by name of the metric: in the test phase from
    # zero, and at the states of training, where states persist. Only of finished units.
    from_zero: dict[str, float] = field(default_factory=dict)
    persistent: dict[str, float] = field(default_factory=dict)
    inference: dict[str, float] = field(default_factory=dict)
    # From zero again, at the epoch that is best on average over all units.
    best_mean_epoch: int = 0
    best_mean_epoch_from_zero: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_state(self.state)


def _check_state(state: str) -> None:
    if state not in STATES:
        raise UserError(f"state cannot be {state[:60]!r}.")


def runs_root() -> Path:
    """Where runs go: $LPGNN_RUNS, or `runs/` in the current folder."""
    return Path(os.environ.get("LPGNN_RUNS") or "runs").absolute()


def make_folder(path: Path) -> Path:
    """A folder under the root of all runs."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_make(path, error) from error
    return path


def _cannot_make(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{path} cannot be made: {error.strerror}; set LPGNN_RUNS to a folder that can be written."
    )


class RunFolder:
    """Paths and records of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, root: Path, command: str, name: str) -> RunFolder:
        """A new folder `root/command/date/time-name`, never one that another run has."""
        checked_name("name", name)
        now = datetime.now()
        parent = make_folder(root / command / now.strftime("%Y-%m-%d"))
        stem = f"{now.strftime('%H-%M-%S')}-{name}"
        for number in range(1, 10_000):
            path = parent / (stem if number == 1 else f"{stem}-{number}")
            try:
                path.mkdir()
            except FileExistsError:
                continue
            except OSError as error:
                raise _cannot_make(path, error) from error
            return cls(path)
        raise UserError(f"{parent} holds too many runs named {stem}; set another name=.")

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        folder = cls(Path(path))
        if not folder.record_path.is_file():
            raise UserError(f"{path} is not a run folder: it has no run.json.")
        _refuse_ways_out(folder.path)
        return folder

    @contextmanager
    def held(self) -> Iterator[None]:
        """Compute this run, which nobody else can do at the same time."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locks.held(self.lock_path))
            except locks.Busy:
                record = self.read_record()
                raise UserError(
                    f"{self.path} is still running, as process {record.pid} of {record.host}; "
                    "stop that one first."
                ) from None
            yield

    @property
    def is_held(self) -> bool:
        """Whether a process is computing it now."""
        return locks.is_held(self.lock_path)

    def actual_state(self, record: RunRecord) -> str:
        """A run that calls itself running while nobody computes it was interrupted."""
        return INTERRUPTED if record.state == RUNNING and not self.is_held else record.state

    @property
    def lock_path(self) -> Path:
        return self.path / LOCK

    @property
    def record_path(self) -> Path:
        return self.path / "run.json"

    @property
    def config_path(self) -> Path:
        return self.path / "config.yaml"

    @property
    def data_path(self) -> Path:
        return self.path / "data.json"

    @property
    def summary_path(self) -> Path:
        return self.path / "summary.json"

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    def unit(self, name: str) -> Path:
        return self.path / "units" / checked_name("unit", name)

    def make_unit(self, name: str) -> Path:
        """The folder of a unit, in a run folder that must be there still."""
        folder = self.unit(name)
        folder.parent.mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)
        return folder

    def write_record(self, record: RunRecord) -> None:
        write_atomically(self.record_path, json.dumps(asdict(record), indent=1))

    def read_record(self) -> RunRecord:
        return record_from(RunRecord, read_json(self.record_path), self.record_path)

    def write_result(self, result: UnitResult) -> None:
        write_atomically(
            self.unit(result.unit) / "result.json", json.dumps(asdict(result), indent=1)
        )

    def read_result(self, unit: str) -> UnitResult | None:
        path = self.unit(unit) / "result.json"
        if not path.is_file():
            return None
        raw = read_json(path)
        if "from_zero" not in raw and raw.get("state") == FINISHED:
            try:
                raw |= _figures_of_0_1(raw)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise UserError(f"{path} is damaged: it lacks {error}.") from error
        return record_from(UnitResult, raw, path)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_atomically(self.summary_path, json.dumps(dict(summary), indent=1))

    def read_summary(self) -> dict[str, Any]:
        """What is stored, whichever command wrote it; `runsummary` gives it types."""
        if not self.summary_path.is_file():
            return {}
        return read_json(self.summary_path)

    def read_metrics(self, unit: str) -> list[dict[str, float]]:
        return list(iterate_metrics(self.unit(unit) / "metrics.csv"))


def _refuse_ways_out(folder: Path) -> None:
    """A link could have us write elsewhere or send what is there; a pipe would never end."""
    for parent, children, files in os.walk(folder):
        for name in (*children, *files):
            path = Path(parent, name)
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # a writer that is at work has just replaced it
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UserError(
                    f"{folder} is refused: its {path.relative_to(folder)} is a link, a pipe or a "
                    "device, and lpgnn writes plain files and folders only."
                )
        if Path(parent) == folder:
            # A sweep has links to its jobs, and submitit some of its own; jobs are runs, each of
            # which is looked at when it is opened.
            children[:] = [name for name in children if name not in ("jobs", "slurm")]


def _figures_of_0_1(raw: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Version 0.1 kept the accuracy from zero among what it learnt of inference."""
    inference = dict(raw["inference"])
    if "from_zero_accuracy" in inference:
        return {
            "from_zero": {"accuracy": inference.pop("from_zero_accuracy")},
            "persistent": {"accuracy": inference.pop("persistent_accuracy")},
            "inference": inference,
        }
    # Nothing persisted: what was logged is from zero.
    part = TEST if any(name.startswith(f"{TEST}/") for name in raw["metrics"]) else TRAIN
    logged = {name.partition("/"): value for name, value in raw["metrics"].items()}
    return {"from_zero": {name: value for (of, _, name), value in logged.items() if of == part}}


def run_folders(root: Path) -> Iterator[Path]:
    """Every run folder below `root`, without looking into what runs themselves hold."""
    for folder, children, files in os.walk(root):
        children[:] = sorted(set(children) - {"units", "figures", "mlartifacts"})
        if "run.json" in files:
            yield Path(folder)


class MetricsWriter:
    """Appends one row per epoch; a row is on disk before the next epoch starts."""

    def __init__(self, path: Path, keep_epochs: int = 0) -> None:
        """Opens the file, keeping its first `keep_epochs` rows (a resumed run)."""
        lines = path.read_text(encoding="utf-8").splitlines() if keep_epochs else []
        kept = lines[: keep_epochs + 1]
        if keep_epochs and len(kept) <= keep_epochs:
            raise UserError(
                f"{path} is damaged: it has {max(0, len(kept) - 1)} of the {keep_epochs} epochs "
                "that the checkpoint beside it comes after; remove the folder of this unit to "
                "train it anew."
            )
        write_atomically(path, "".join(f"{line}\n" for line in kept))
        self._columns = kept[0].split(",") if kept else []
        self._file: TextIO = path.open("a", encoding="utf-8", newline="")

    def write(self, epoch: int, metrics: Mapping[str, float]) -> None:
        if not self._columns:
            self._columns = [EPOCH, TIME, *metrics]
            self._file.write(",".join(self._columns) + "\n")
        row = {EPOCH: epoch, TIME: round(time.time() * 1000), **metrics}
        self._file.write(",".join(repr(row[c]) for c in self._columns) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def iterate_metrics(path: Path) -> Iterator[dict[str, float]]:
    """The complete rows of a metrics file; a row still being written is left out."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as file:
        complete = (line for line in file if line.endswith("\n"))
        for row in csv.DictReader(complete):
            yield {name: float(value) for name, value in row.items()}
