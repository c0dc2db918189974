"""Metrics written straight into sqlite are those that MLflow itself would have written."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlflow.entities import Metric

from lpgnn_cli.tracking import bulk
from lpgnn_cli.tracking.bulk import MetricPoint
from lpgnn_cli.tracking.sender import Sender
from lpgnn_cli.tracking.store import Store, open_store

values = st.sampled_from([0.0, 0.5, -1.5, 1e-300, float("inf"), float("-inf"), float("nan")])
# Few names, times and steps, so that points collide in every way there is.
points = st.tuples(
    st.sampled_from(["train/loss", "test/layer0/violation_mean"]),
    values | st.floats(width=32),
    st.integers(1000, 1002),
    st.integers(0, 2),
)


@pytest.fixture
def database(runs: Path, empty_store: Path) -> Path:
    return Path(shutil.copy(empty_store, runs / "mlflow.db"))


@pytest.fixture
def store(database: Path) -> Store:
    return open_store(f"sqlite:///{database}", "lpgnn")


def rows_of(database: Path, table: str, run_id: str) -> list[tuple[object, ...]]:
    query = f"SELECT key, value, timestamp, step, is_nan FROM {table} WHERE run_uuid = ?"
    with closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute(query, (run_id,)))


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=st.lists(st.lists(points, min_size=1, max_size=6), min_size=1, max_size=3))
def test_the_same_rows_as_log_batch(
    database: Path, store: Store, batches: list[list[MetricPoint]]
) -> None:
    theirs, ours = (store.client.create_run(store.experiment_id).info.run_id for _ in range(2))
    for batch in batches:
        store.client.log_batch(theirs, metrics=[Metric(*point) for point in batch])
        bulk.write_metrics(database, ours, batch)
    for table in ("metrics", "latest_metrics"):
        assert rows_of(database, table, ours) == rows_of(database, table, theirs)


def test_nothing_is_written_to_a_run_that_was_deleted(database: Path, store: Store) -> None:
    run_id = store.client.create_run(store.experiment_id).info.run_id
    store.client.delete_run(run_id)
    with pytest.raises(LookupError, match="no longer in the store"):
        bulk.write_metrics(database, run_id, [("train/loss", 1.0, 1000, 1)])
    assert rows_of(database, "metrics", run_id) == []


def test_other_tables_than_expected_are_left_to_mlflow(database: Path, store: Store) -> None:
    assert bulk.understands(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("ALTER TABLE metrics ADD COLUMN unit TEXT")
    assert not bulk.understands(database)
    run_id = store.client.create_run(store.experiment_id).info.run_id
    Sender(store).metrics(run_id, [("train/loss", 1.0, 1000, 1)])
    assert len(rows_of(database, "metrics", run_id)) == 1
