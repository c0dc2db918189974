"""Which MLflow store, and how it comes into being once."""

from __future__ import annotations

import contextlib
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import runs_root

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_SQLITE = "sqlite:///"
# The dashboard then opens with runs and metrics rather than with traces and prompts.
_EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}


def default_uri() -> str:
    """sqlite under the root of all runs."""
    return f"{_SQLITE}{runs_root() / 'mlflow.db'}"


def resolve_uri(configured: str | None) -> str:
    """The `tracking.uri` setting, else $MLFLOW_TRACKING_URI, else sqlite under the runs."""
    uri = configured or os.environ.get("MLFLOW_TRACKING_URI") or default_uri()
    path = sqlite_path(uri)
    return f"{_SQLITE}{path.absolute()}" if path else uri


def sqlite_path(uri: str) -> Path | None:
    return Path(uri.removeprefix(_SQLITE)) if uri.startswith(_SQLITE) else None


def existing_uri(given: str | None) -> str:
    """A store to read: reading must not make a new one."""
    uri = resolve_uri(given)
    database = sqlite_path(uri)
    if database is not None and not database.is_file():
        raise UserError(f"there is nothing to show yet: {database} comes with the first run.")
    return uri


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
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def open_store(uri: str, experiment: str) -> Store:
    """Opens the store and the experiment, making them if this is the first time.

    A new database that several processes open at once breaks in its migrations, so they take turns.
    """
    database = sqlite_path(uri)
    with _turn(database):
        client = open_client(uri)
        return Store(client, _experiment_id(client, experiment, database), database)


def _turn(database: Path | None) -> AbstractContextManager[object]:
    if database is None:
        return contextlib.nullcontext()
    return FileLock(database.with_name(f".{database.name}.lock"))


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
    return str(found.experiment_id)
