"""MLflow's client within MLflow's limits: batches, lengths, one writer at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from lpgnn_cli.tracking import bulk
from lpgnn_cli.tracking.bulk import MetricPoint
from lpgnn_cli.tracking.store import Store

METRICS_PER_BATCH = 1000
SOURCE_TYPE = "lpgnn"
# Of 36 at most, as many as MLflow shows in a table; the whole fingerprint is in the profile.
DIGEST_LENGTH = 12
PARAMS_PER_BATCH = 100
PARAM_LENGTH = 6000
TAG_LENGTH = 5000

T = TypeVar("T")


@dataclass(frozen=True)
class DataInput:
    """What a run reads, as MLflow's table of datasets has it; `source` and `profile` are JSON."""

    name: str
    digest: str
    context: str
    source: str
    profile: str


class Sender:
    """Every call returns after the store has acknowledged it, or raises."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._client = store.client
        self._bulk = bool(store.database and bulk.understands(store.database))
        self.metrics_sent = 0

    def create_run(self, name: str, start: int, tags: Mapping[str, str]) -> str:
        with self._store.writing():
            run = self._client.create_run(
                self._store.experiment_id, start_time=start, tags=_cut(tags), run_name=name
            )
        return str(run.info.run_id)

    def delete_run(self, run_id: str) -> None:
        with self._store.writing():
            self._client.delete_run(run_id)

    def find_runs(self, tag: str, value: str) -> list[tuple[str, dict[str, str]]]:
        """Ids and tags of the runs with this tag, the oldest first."""
        runs = self._client.search_runs(
            [self._store.experiment_id],
            filter_string=f"tags.`{tag}` = '{value}'",
            order_by=["attributes.start_time ASC"],
            max_results=5000,
        )
        return [(run.info.run_id, dict(run.data.tags)) for run in runs]

    def metrics(self, run_id: str, points: Iterable[MetricPoint]) -> None:
        for batch in _batches(points, METRICS_PER_BATCH):
            with self._store.writing():
                self._write_metrics(run_id, batch)
            self.metrics_sent += len(batch)

    def _write_metrics(self, run_id: str, batch: Sequence[MetricPoint]) -> None:
        if self._bulk and self._store.database:
            bulk.write_metrics(self._store.database, run_id, batch)
            return
        from mlflow.entities import Metric

        metrics = [Metric(*point) for point in batch]
        self._client.log_batch(run_id, metrics=metrics, synchronous=True)

    def params(self, run_id: str, params: Mapping[str, str]) -> None:
        from mlflow.entities import Param

        entries = (Param(key, value[:PARAM_LENGTH]) for key, value in params.items())
        for batch in _batches(entries, PARAMS_PER_BATCH):
            with self._store.writing():
                self._client.log_batch(run_id, params=batch, synchronous=True)

    def tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        entries = [RunTag(key, value) for key, value in _cut(tags).items()]
        with self._store.writing():
            self._client.log_batch(run_id, tags=entries, synchronous=True)

    def artifact(self, run_id: str, file: Path, folder: str | None) -> None:
        self._client.log_artifact(run_id, str(file), artifact_path=folder)

    def inputs(self, run_id: str, inputs: Sequence[DataInput]) -> None:
        """What the run reads; what it is known to read already stays as it is."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        entries = [
            DatasetInput(
                Dataset(item.name, item.digest, SOURCE_TYPE, item.source, profile=item.profile),
                [InputTag("mlflow.data.context", item.context)],
            )
            for item in inputs
        ]
        with self._store.writing():
            self._client.log_inputs(run_id, entries)

    def model(self, run_id: str, name: str, tags: Mapping[str, str]) -> str:
        """The id of the run's model: that of an earlier attempt, or a new one."""
        with self._store.writing():
            found = self._client.search_logged_models(
                [self._store.experiment_id], f"source_run_id = '{run_id}'", max_results=1
            )
            if found:
                return str(found[0].model_id)
            model = self._client.create_logged_model(
                self._store.experiment_id, _model_name(name), run_id, _cut(tags), model_type="lpgnn"
            )
        return str(model.model_id)

    def model_files(self, model_id: str, folder: Path) -> None:
        self._client.log_model_artifacts(model_id, str(folder))

    def model_ready(
        self, run_id: str, model_id: str, points: Sequence[MetricPoint], data: DataInput
    ) -> None:
        """The files are there: the model belongs to the run, with these of the run's metrics."""
        from mlflow.entities import LoggedModelOutput, Metric

        metrics = [Metric(*p, model_id, data.name, data.digest, run_id) for p in points]
        with self._store.writing():
            self._client.finalize_logged_model(model_id, "READY")
            known = self._client.get_run(run_id).outputs
            if not known or model_id not in [m.model_id for m in known.model_outputs]:
                self._client.log_outputs(run_id, [LoggedModelOutput(model_id, step=0)])
            self._client.log_batch(run_id, metrics=metrics[:METRICS_PER_BATCH], synchronous=True)

    def delete_model(self, model_id: str) -> None:
        from mlflow.exceptions import MlflowException

        with self._store.writing(), suppress(MlflowException):  # somebody else may have
            self._client.delete_logged_model(model_id)

    def register(self, name: str, alias: str, run_id: str, model_id: str) -> None:
        """The model as the newest version of a registered one, which the alias then stands for."""
        from mlflow.exceptions import MlflowException

        with self._store.writing():
            with suppress(MlflowException):  # there is one of that name
                self._client.create_registered_model(name)
            # Not models:/<id>, which a local store looks up in whatever store is MLflow's default.
            source = self._client.get_logged_model(model_id).artifact_location
            versions = self._client.search_model_versions(f"run_id = '{run_id}'")
            known = [v.version for v in versions if (v.name, v.source) == (name, source)]
            if not known:
                made = self._client.create_model_version(
                    name, source, run_id, await_creation_for=0, model_id=model_id
                )
                known.append(made.version)
            self._client.set_registered_model_alias(name, alias, known[0])

    def status(self, run_id: str, status: str, end: int | None) -> None:
        with self._store.writing():
            if status == "RUNNING":
                self._client.update_run(run_id, status=status)
            else:
                self._client.set_terminated(run_id, status=status, end_time=end)


def _cut(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value[:TAG_LENGTH] for key, value in tags.items() if value}


def _model_name(name: str) -> str:
    """MLflow refuses some characters in names of models."""
    return re.sub(r"[/:.%\"']", "_", name)


def _batches(entries: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    remaining = iter(entries)
    while batch := list(islice(remaining, size)):
        yield batch
