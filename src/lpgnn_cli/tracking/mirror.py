"""Sends to MLflow what a run folder has and the store has not: the one place that sends.

One parent run for the folder, one child for each unit. A child has the columns of its metrics.csv
epoch by epoch; the parent, once the run has ended, those of curves.csv (mean and std over the
units) and what summary.json has. Long curves go thinned (see `thinning`), nothing is sent twice
(see `state`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lpgnn_cli.metrics import EPOCH, INFERENCE, TIME, WHEN, is_std
from lpgnn_cli.runfolder import (
    FINISHED,
    HONEST,
    INTERRUPTED,
    LAST,
    MODEL,
    PERSISTENT,
    RUNNING,
    SELECTED,
    RunFolder,
    RunRecord,
    Unit,
    UnitResult,
)
from lpgnn_cli.runsummary import HONEST_RULE, SECONDS
from lpgnn_cli.settings import read_flat_config
from lpgnn_cli.tracking import state as tracking_state
from lpgnn_cli.tracking.bulk import MetricPoint
from lpgnn_cli.tracking.headings import NAME_TAG, NOTE_TAG, data_inputs, read_note, run_name
from lpgnn_cli.tracking.models import model_folder, registered_as, wants_models
from lpgnn_cli.tracking.sender import METRICS_PER_BATCH, DataInput, Sender
from lpgnn_cli.tracking.state import MirroredRun, TrackingState
from lpgnn_cli.tracking.store import Store, one_line, open_store
from lpgnn_cli.tracking.system import SystemMetrics
from lpgnn_cli.tracking.table import GrowingTable
from lpgnn_cli.tracking.thinning import Row, end_and_extremes, is_sent, stride
from lpgnn_cli.tracking.view import UNIT_TAG

# What the names of a unit's metrics in the epoch of its result begin with.
AT_SELECTED = "selected"
RUN_TAG, PARENT_TAG = "lpgnn.run_id", "mlflow.parentRunId"
_STATUS = {RUNNING: "RUNNING", FINISHED: "FINISHED", INTERRUPTED: "KILLED"}
PARENT_FILES = (
    "config.yaml",
    "run.json",
    "summary.json",
    "curves.csv",
    "folds.csv",
    "leaderboard.csv",
    "leaderboard.md",
    "nested.csv",
    "report.md",
)
_UNIT_FILES = ("metrics.csv", "result.json", "predictions.csv")


@dataclass(frozen=True)
class Sent:
    """What one pass sent."""

    metrics: int
    artifacts: int


class Mirror:
    """One run folder and the store it is mirrored to; `send` as often as wished."""

    def __init__(
        self, run: RunFolder, uri: str, experiment: str, parent_run_id: str | None = None
    ) -> None:
        """`parent_run_id`: the MLflow run of the sweep that the run belongs to."""
        self._run = run
        self._uri = uri
        self._experiment = experiment
        self._parent_run_id = parent_run_id
        self._store: Store | None = None
        self._tables: dict[Path, GrowingTable] = {}
        self._stride: int | None = None
        self._system: SystemMetrics | None = None
        # Whether the store may have runs of this folder that tracking.json does not know of.
        self._in_doubt = True

    def send(self, *, ended: bool) -> Sent:
        """One pass. `ended`: nobody writes to the folder any more, so results and files go too.

        Raises whatever the store raises, after noting it in tracking.json.
        """
        with tracking_state.lock(self._run):
            state = tracking_state.read_state(self._run)
            if state is None or (state.uri, state.experiment) != (self._uri, self._experiment):
                state = TrackingState(self._uri, self._experiment)
            try:
                self._store = self._store or open_store(self._uri, self._experiment)
                sender = Sender(self._store)
                self._stride = self._stride or _planned_stride(self._run)
                one_pass = _Pass(self._run, state, sender, self._tables, self._stride or 1, ended)
                one_pass.record.parent_run_id = self._parent_run_id or one_pass.record.parent_run_id
                if self._in_doubt or ended:
                    one_pass.reconcile()
                    self._in_doubt = False
                one_pass.send()
                if not ended and one_pass.settings.get("tracking.system_metrics") == "true":
                    self._send_system_metrics(sender, state.parent.run_id)
            except Exception as error:
                self._in_doubt = True
                state.state, state.reason = tracking_state.UNREACHABLE, one_line(error)
                state.complete = False
                tracking_state.write_state(self._run, state)
                raise
            state.state, state.reason, state.complete = tracking_state.OK, "", ended
            tracking_state.write_state(self._run, state)
            return Sent(sender.metrics_sent, one_pass.artifacts_sent)

    def _send_system_metrics(self, sender: Sender, run_id: str) -> None:
        if self._system is None:
            self._system = SystemMetrics()
        else:
            sender.metrics(run_id, self._system.sample())


class _Pass:
    """One pass over the folder."""

    def __init__(
        self,
        run: RunFolder,
        state: TrackingState,
        sender: Sender,
        tables: dict[Path, GrowingTable],
        stride: int,
        ended: bool,
    ) -> None:
        self.run = run
        self.state = state
        self.sender = sender
        self.tables = tables
        self.stride = stride
        self.ended = ended
        self.record = run.read_record()
        self.settings = read_flat_config(run.config_path)
        self.inputs = data_inputs(run, self.record, self.settings)
        units = [unit.name for unit in self.record.units]
        self.results = {unit: run.read_result(unit) for unit in units}
        self.unit_tables = {unit: self._table(run.unit(unit) / "metrics.csv") for unit in units}
        self._ended_at = _milliseconds(self.record.ended or self.record.started)
        self.artifacts_sent = 0

    def reconcile(self) -> None:
        """Takes over runs whose creation was not acknowledged, removes twins of known ones, and
        forgets those that somebody deleted."""
        found = self.sender.find_runs(RUN_TAG, self.record.id)
        present = {run_id for run_id, _ in found}
        for mirrored in (self.state.parent, *self.state.units.values()):
            if mirrored.run_id not in present:
                mirrored.forget()
        for run_id, tags in found:
            unit = tags.get(UNIT_TAG)
            mirrored = self._mirrored(unit) if unit else self.state.parent
            if not mirrored.run_id:
                mirrored.run_id = run_id
            elif mirrored.run_id != run_id:
                self.sender.delete_run(run_id)
        self._save()

    def send(self) -> None:
        self._send_parent_head()
        for unit in self.record.units:
            self._send_unit(unit)
        self._send_rows(self.state.parent, self._parent_curves())
        if self.ended:
            self._send_parent_results()

    def _send_parent_head(self) -> None:
        parent = self.state.parent
        if self._rewritten(parent, self._parent_curves()):
            self._delete(parent)
        settings = self.settings
        if not parent.run_id:
            start = _milliseconds(self.record.started)
            tags = {
                RUN_TAG: self.record.id,
                PARENT_TAG: self.record.parent_run_id or "",
                "mlflow.source.name": f"lpgnn {self.record.command}",
            }
            self._create(parent, run_name(self.record, settings), start, tags)
            for child in self.state.units.values():
                if child.run_id:
                    self.sender.tags(child.run_id, {PARENT_TAG: parent.run_id})
        if not self.ended:
            self._set_status(parent, RUNNING, None)
        if not parent.params and settings:
            self.sender.params(parent.run_id, settings)
            parent.params = True
            self._save()
        self._send_inputs(parent, self.inputs)
        tags = _record_tags(self.record, self.run)
        if parent.tags != tags:
            self.sender.tags(parent.run_id, tags)
            parent.tags = tags
            self._save()

    def _send_unit(self, unit: Unit) -> None:
        table = self.unit_tables[unit.name]
        rows = table.rows
        result = self.results[unit.name]
        if not rows and result is None:
            return
        child = self._mirrored(unit.name)
        if self._rewritten(child, table):
            self._delete(child)
        started = round(rows[0][TIME]) if rows else _milliseconds(self.record.started)
        if not child.run_id:
            tags = {
                RUN_TAG: self.record.id,
                UNIT_TAG: unit.name,
                PARENT_TAG: self.state.parent.run_id,
                "lpgnn.fold": str(unit.fold),
                "lpgnn.seed": str(unit.seed),
            }
            self._create(child, unit.name, started, tags)
        self._send_inputs(child, self.inputs[:1])
        self._send_rows(child, table)
        ended = round(rows[-1][TIME]) if rows else started
        if result is not None:
            points = [*self._end_and_extremes(table), *_result_points(result, ended)]
            self._send_results(child, points, _result_tags(result))
            if self.ended:
                of_result = _result_points(result, ended)
                name = f"{self.record.name}-{unit.name}"
                self._send_model(child, name, [unit.name], of_result)
        if result is not None or self.ended:
            self._set_status(child, result.state if result else INTERRUPTED, ended)
        else:
            self._set_status(child, RUNNING, None)
        if self.ended:
            folder = self.run.unit(unit.name)
            # The checkpoint behind the honest figures, never one that test labels have chosen.
            checkpoint = SELECTED if (folder / SELECTED).is_file() else LAST
            self._send_files(child, [folder / name for name in (*_UNIT_FILES, checkpoint)], None)

    def _send_parent_results(self) -> None:
        parent, ended = self.state.parent, self._ended_at
        curves = self._parent_curves().columns
        summary = self.run.read_summary()
        own = {key: value for key, value in summary.items() if key not in curves}
        points = [(k, float(v), ended, 0) for k, v in own.items() if isinstance(v, int | float)]
        tags = {k: v for k, v in own.items() if isinstance(v, str)}
        of_run = points
        points = [*self._end_and_extremes(self._parent_curves()), *points]
        tags |= {NOTE_TAG: note} if (note := read_note(self.run, parent.run_id)) else {}
        self._send_results(parent, points, tags)
        self._send_model(parent, self.record.name, list(self.results), of_run)
        self._register()
        self._send_files(parent, [self.run.path / name for name in PARENT_FILES], None)
        self._send_files(parent, sorted(self.run.figures.glob("*.*")), "figures")
        # A folder that nobody writes to, yet says "running", is of a run that was killed.
        state = self.record.state if self.record.state != RUNNING else INTERRUPTED
        self._set_status(parent, state, ended)

    def _send_inputs(self, mirrored: MirroredRun, inputs: Sequence[DataInput]) -> None:
        if inputs and not mirrored.inputs:
            self.sender.inputs(mirrored.run_id, inputs)
            mirrored.inputs = True
            self._save()

    def _send_model(
        self, mirrored: MirroredRun, name: str, units: Sequence[str], points: Sequence[MetricPoint]
    ) -> None:
        """The networks of these units, as far as they are finished, with the run's results."""
        finished = [unit for unit in units if (self.run.unit(unit) / MODEL).is_file()]
        if not finished or not wants_models(self.record, self.settings):
            return
        made_of = json.dumps([_stamp(self.run.unit(unit) / MODEL) for unit in finished])
        if mirrored.model_files != made_of:
            if mirrored.model_files:
                self.sender.delete_model(mirrored.model)
            tags = {RUN_TAG: self.record.id, "units": ", ".join(finished)}
            mirrored.model = self.sender.model(mirrored.run_id, name, tags)
            self._save()
            to_send = (self.run, self.record, finished, mirrored.model, mirrored.run_id)
            with model_folder(*to_send) as folder:
                self.sender.model_files(mirrored.model, folder)
            self.sender.model_ready(mirrored.run_id, mirrored.model, points, self.inputs[0])
            mirrored.model_files = made_of
            self._save()

    def _register(self) -> None:
        """The networks of the run under the name that `tracking.register` gives them."""
        parent = self.state.parent
        name, alias = registered_as(self.settings)
        version = f"{name}@{alias} {parent.model}"
        if name and parent.model and parent.registered != version:
            self.sender.register(name, alias, parent.run_id, parent.model)
            parent.registered = version
            self._save()

    def _parent_curves(self) -> GrowingTable:
        """Empty until they are final: an interrupted run may be resumed and get others."""
        path = self.run.path / "curves.csv"
        ended = self.ended and self.record.state not in (RUNNING, INTERRUPTED)
        return self._table(path) if ended or self._is_of_all_units(path) else GrowingTable(Path())

    def _is_of_all_units(self, path: Path) -> bool:
        """Whether it was written after all units had finished."""
        if not all(result and result.state == FINISHED for result in self.results.values()):
            return False
        results = [self.run.unit(unit) / "result.json" for unit in self.results]
        newest = max((file.stat().st_mtime_ns for file in results), default=0)
        return path.is_file() and path.stat().st_mtime_ns >= newest

    def _table(self, path: Path) -> GrowingTable:
        table = self.tables.setdefault(path, GrowingTable(path))
        table.refresh()
        return table

    def _rewritten(self, mirrored: MirroredRun, table: GrowingTable) -> bool:
        """Whether the rows that were sent are no longer those of the folder."""
        if len(table.rows) < mirrored.rows:
            # A resumed run may well compute the same rows again.
            return self.ended
        return table.digests[mirrored.rows] != mirrored.digest

    def _send_rows(self, mirrored: MirroredRun, table: GrowingTable) -> None:
        step = self.stride * max(1, METRICS_PER_BATCH // max(1, len(table.columns)))
        for start in range(mirrored.rows, len(table.rows), step):
            batch = table.rows[start : start + step]
            self.sender.metrics(mirrored.run_id, self._points(batch, start))
            mirrored.rows += len(batch)
            mirrored.digest = table.digests[mirrored.rows]
            self._save()

    def _points(self, rows: Iterable[Row], start: int) -> Iterator[MetricPoint]:
        for index, row in enumerate(rows, start):
            if is_sent(row, self.stride):
                time = self._time(row, index)
                for name, value in row.items():
                    if name not in WHEN and self._varies(name):
                        yield name, value, time, int(row[EPOCH])

    def _end_and_extremes(self, table: GrowingTable) -> Iterator[MetricPoint]:
        for name, index in end_and_extremes(table.rows, self.stride):
            row = table.rows[index]
            if self._varies(name):
                yield name, row[name], self._time(row, index), int(row[EPOCH])

    def _varies(self, name: str) -> bool:
        """A single unit has no spread: a third of its points would say 0."""
        return len(self.record.units) > 1 or not is_std(name)

    def _time(self, row: Row, index: int) -> int:
        return round(row[TIME]) if TIME in row else self._time_of_all(index)

    def _time_of_all(self, index: int) -> int:
        """When the last unit had computed this row, of which curves.csv has the mean."""
        rows = [table.rows[index] for table in self.unit_tables.values() if index < len(table.rows)]
        return round(max((row[TIME] for row in rows), default=1000 * self.record.started))

    def _send_results(
        self, mirrored: MirroredRun, points: Sequence[MetricPoint], tags: Mapping[str, str]
    ) -> None:
        digest = hashlib.sha1(json.dumps([points, tags]).encode()).hexdigest()
        if mirrored.results == digest:
            return
        self.sender.metrics(mirrored.run_id, points)
        self.sender.tags(mirrored.run_id, tags)
        mirrored.results = digest
        self._save()

    def _send_files(self, mirrored: MirroredRun, files: Iterable[Path], folder: str | None) -> None:
        for file in files:
            if not file.is_file():
                continue
            stamp = _stamp(file)
            name = str(file.relative_to(self.run.path))
            if mirrored.artifacts.get(name) != stamp:
                self.sender.artifact(mirrored.run_id, file, folder)
                self.artifacts_sent += 1
                mirrored.artifacts[name] = stamp
                self._save()

    def _set_status(self, mirrored: MirroredRun, state: str, ended: int | None) -> None:
        status = _STATUS.get(state, "FAILED")
        if mirrored.status != status:
            self.sender.status(mirrored.run_id, status, ended)
            mirrored.status = status
            self._save()

    def _mirrored(self, unit: str) -> MirroredRun:
        return self.state.units.setdefault(unit, MirroredRun())

    def _create(
        self, mirrored: MirroredRun, name: str, start: int, tags: Mapping[str, str]
    ) -> None:
        mirrored.run_id = self.sender.create_run(name, start, tags)
        mirrored.status = _STATUS[RUNNING]
        self._save()

    def _delete(self, mirrored: MirroredRun) -> None:
        """Rows in MLflow cannot be changed: a run whose rows changed makes way for a new one."""
        self.sender.delete_run(mirrored.run_id)
        mirrored.forget()
        self._save()

    def _save(self) -> None:
        tracking_state.write_state(self.run, self.state)


def _planned_stride(run: RunFolder) -> int | None:
    """None where the config is not written yet; a sweep, or a config without epochs, has no long
    curves."""
    settings = read_flat_config(run.config_path)
    epochs = settings.get("epochs", "null")
    return stride(1 if epochs == "null" else int(epochs)) if settings else None


def _result_points(result: UnitResult, time: int) -> list[MetricPoint]:
    """What the honest rule selects, from zero and as it was in training, and how that was found."""
    values: dict[str, float] = {
        **{f"{HONEST}/{name}": value for name, value in result.from_zero.items()},
        **{f"{PERSISTENT}/{name}": value for name, value in result.persistent.items()},
        **{f"{AT_SELECTED}/{name}": value for name, value in result.metrics.items()},
        **{f"{INFERENCE}/{name}": value for name, value in result.inference.items()},
        f"{HONEST}/{EPOCH}": result.selected_epoch,
        SECONDS: result.seconds,
    }
    return [(name, float(value), time, 0) for name, value in values.items()]


def _result_tags(result: UnitResult) -> dict[str, str]:
    return {HONEST_RULE: result.rule, "state": result.state, "reason": result.reason}


def _record_tags(record: RunRecord, run: RunFolder) -> dict[str, str]:
    tags = {
        NAME_TAG: record.name,
        "version": record.version,
        "git_commit": record.git_commit or "",
        "device": record.device,
        "segment_backend": record.segment_backend,
        "dataset": record.dataset,
        "dataset_fingerprint": record.dataset_fingerprint,
        "split_fingerprint": record.split_fingerprint,
        "state": record.state,
        "reason": record.reason,
        "folder": str(run.path.absolute()),
        "command": " ".join(["lpgnn", *record.argv]),
    }
    return {key: value for key, value in tags.items() if value}


def _stamp(file: Path) -> str:
    """Tells whether a file has changed."""
    stat = file.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
