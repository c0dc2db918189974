"""MLflow's client within MLflow's limits: batches, lengths, one writer at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from lpgnn_cli.tracking import bulk
from lpgnn_cli.tracking.bulk import MetricPoint
from lpgnn_cli.tracking.store import Store

METRICS_PER_BATCH = 1000
PARAMS_PER_BATCH = 100
PARAM_LENGTH = 6000
TAG_LENGTH = 5000

T = TypeVar("T")


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

    def status(self, run_id: str, status: str, end: int | None) -> None:
        with self._store.writing():
            if status == "RUNNING":
                self._client.update_run(run_id, status=status)
            else:
                self._client.set_terminated(run_id, status=status, end_time=end)


def _cut(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value[:TAG_LENGTH] for key, value in tags.items() if value}


def _batches(entries: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    remaining = iter(entries)
    while batch := list(islice(remaining, size)):
        yield batch
