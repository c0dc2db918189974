"""Which MLflow store, and how it comes into being once."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lpgnn_cli.credentials import TRACKING_URI, keep, redact, restore
from lpgnn_cli.errors import UserError
from lpgnn_cli.locks import held
from lpgnn_cli.runfolder import runs_root
from lpgnn_cli.tracking import view

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.tracking import MlflowClient

_SQLITE = "sqlite:///"
# Seconds that another program may keep a database to itself, and that another writer of ours may,
# which on a busy machine makes a new database in half a minute.
BUSY_SECONDS = 5.0
TURN_SECONDS = 90.0
# The dashboard then opens with runs and metrics rather than with traces and prompts, and with the
# columns that matter.
_EXPERIMENT_TAGS = {
    "mlflow.experimentKind": "custom_model_development",
    view.TAG: view.saved_view(),
}


def default_uri() -> str:
    """sqlite under the root of all runs."""
    return f"{_SQLITE}{runs_root() / 'mlflow.db'}"


def resolve_uri(configured: str | None) -> str:
    """The `tracking.uri` setting, else $MLFLOW_TRACKING_URI, else sqlite under the runs.

    As it may be shown: `open_client` alone adds names and passwords again.
    """
    uri = keep(configured or os.environ.get(TRACKING_URI) or default_uri())
    path = sqlite_path(uri)
    return f"{_SQLITE}{path.absolute()}" if path else uri


def sqlite_path(uri: str) -> Path | None:
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def existing_uri(given: str | None) -> str:
    """A store to read: reading must not make a new one."""
    uri = resolve_uri(given)
    database = sqlite_path(uri)
    if database is not None:
        if not database.is_file():
            raise UserError(f"there is nothing to show yet: {database} comes with the first run.")
        check_database(database)
    elif "://" not in uri.removeprefix("file://"):
        folder = Path(uri.removeprefix("file://").removeprefix("file:"))
        # MLflow would make a store of any folder that it is to read.
        if not any(folder.glob("*/meta.yaml")):
            raise UserError(f"{uri} is not an MLflow store: give a sqlite file or a server.")
    return uri


def check_database(database: Path) -> None:
    """Refuse at once what MLflow would try again and again to open."""
    if not database.is_file():
        return
    try:
        address = f"{database.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, timeout=BUSY_SECONDS, uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {name for (name,) in found}
    except sqlite3.OperationalError as error:
        raise UserError(f"{database} cannot be used: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise UserError(f"{database} is not an MLflow store: {error}.") from error
    if tables and not tables & {"alembic_version", "experiments"}:
        raise UserError(f"{database} is not an MLflow store but another database.")


@contextlib.contextmanager
def reading_store(uri: str) -> Iterator[None]:
    """Whatever a store answers that is not one, or not there, becomes one sentence."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"the MLflow store {uri} cannot be read: {one_line(error)}.") from error


def one_line(error: BaseException) -> str:
    """What is wrong: of a connection or a database that failed, why, without all the layers."""
    innermost = error
    while cause := innermost.__cause__ or (
        None if innermost.__suppress_context__ else innermost.__context__
    ):
        innermost = cause
    if isinstance(innermost, OSError | sqlite3.Error):
        error = innermost
    strerror = error.strerror if isinstance(error, OSError) else None
    text = redact(" ".join((strerror or str(error)).split()) or type(error).__name__)
    return text if len(text) <= 300 else f"{text[:297]}..."


def artifact_root(database: Path) -> Path:
    """Where files go that are sent to a sqlite store: beside it."""
    return database.parent / "mlartifacts"


@dataclass(frozen=True)
class Store:
    """An open store with its experiment."""

    client: MlflowClient
    experiment_id: str
    # The file of a sqlite store.
    database: Path | None

    def writing(self) -> AbstractContextManager[object]:
        """Writers of one sqlite file take turns: sqlite itself fails the one that comes second."""
        return _turn(self.database)


def open_client(uri: str) -> MlflowClient:
    """A client that gives up soon: whoever uses it tries again later by itself."""
    for name, value in {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
        # A retried creation of a run could make two of them.
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MLFLOW_LOGGING_LEVEL": "ERROR",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "GIT_PYTHON_REFRESH": "quiet",
    }.items():
        os.environ.setdefault(name, value)
    if (database := sqlite_path(uri)) is not None:
        check_database(database)
    from mlflow.store.db import utils
    from mlflow.tracking import MlflowClient

    # It would try for two minutes to reach a database that is not there.
    utils.MAX_RETRY_COUNT = 2
    whole = restore(uri)
    return MlflowClient(tracking_uri=whole, registry_uri=whole)


def open_store(uri: str, experiment: str) -> Store:
    """Opens the store and the experiment, making them if this is the first time.

    A new database that several processes open at once breaks in its migrations, so they take turns.
    """
    database = sqlite_path(uri)
    with _turn(database):
        client = open_client(uri)
        return Store(client, _experiment_id(client, experiment, database), database)


def find_experiment(uri: str, name: str) -> str | None:
    """The id of an experiment that is there."""
    with _turn(sqlite_path(uri)):
        client = open_client(uri)
        found = client.get_experiment_by_name(name)
        if found is None:
            return None
        _tag(client, found)
        return str(found.experiment_id)


def _turn(database: Path | None) -> AbstractContextManager[object]:
    if database is None:
        return contextlib.nullcontext()
    return held(database.with_name(f".{database.name}.lock"), wait=TURN_SECONDS)


def _experiment_id(client: MlflowClient, name: str, database: Path | None) -> str:
    from mlflow.exceptions import MlflowException

    location = artifact_root(database).as_uri() if database else None
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name, location, _EXPERIMENT_TAGS))
        except MlflowException as error:
            # Another client of the same server was faster.
            found = client.get_experiment_by_name(name)
            if found is None:
                raise error
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    _tag(client, found)
    return str(found.experiment_id)


def _tag(client: MlflowClient, experiment: Experiment) -> None:
    """One that an earlier version made, or another program."""
    for key, value in _EXPERIMENT_TAGS.items():
        if experiment.tags.get(key) != value:
            client.set_experiment_tag(experiment.experiment_id, key, value)
