"""What MLflow names: a run's folder, on this machine or out of the store, and a logged model."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import BEST_ON_TEST, LAST, SELECTED, RunFolder
from lpgnn_cli.tracking.mirror import PARENT_FILES, PARENT_TAG, RUN_TAG
from lpgnn_cli.tracking.models import model_location
from lpgnn_cli.tracking.store import existing_uri, open_client, reading_store, resolve_uri
from lpgnn_cli.tracking.view import UNIT_TAG

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

# The last one is version 0.1's.
CHECKPOINTS = (SELECTED, LAST, BEST_ON_TEST, "best.pt")


def fetch_run(run_id: str, uri: str | None, checkpoints: bool = True) -> tuple[Path, str | None]:
    """The folder of the run, and the unit if the id is that of a child run."""
    resolved = resolve_uri(uri)
    with reading_store(resolved):
        client = open_client(resolved)
        tags = client.get_run(run_id).data.tags
        unit = tags.get(UNIT_TAG)
        parent_id = tags[PARENT_TAG] if unit else run_id
        parent = client.get_run(parent_id)
        folder = Path(parent.data.tags.get("folder", ""))
        if _is_run(folder, tags[RUN_TAG]):
            return folder, unit
        target = _scratch("lpgnn-run-")
        _download(client, parent_id, PARENT_FILES, target)
        if not checkpoints:
            return target, unit
        children = client.search_runs(
            [parent.info.experiment_id],
            filter_string=f"tags.`{RUN_TAG}` = '{parent.data.tags[RUN_TAG]}'",
            max_results=5000,
        )
        for child in children:
            name = child.data.tags.get(UNIT_TAG)
            if name and unit in (None, name):
                destination = RunFolder(target).unit(name)
                destination.mkdir(parents=True, exist_ok=True)
                _download(client, child.info.run_id, CHECKPOINTS, destination)
    return target, unit


def is_model_uri(text: str) -> bool:
    """models:/NAME/1, models:/NAME@ALIAS, models:/ID, runs:/ID/PATH."""
    return text.startswith(("models:/", "runs:/"))


def is_model(folder: Path) -> bool:
    return (folder / "MLmodel").is_file()


def fetch_model(address: str, uri: str | None) -> Path:
    """The files of a logged or registered model."""
    resolved = existing_uri(uri)
    with reading_store(resolved):
        client = open_client(resolved)
        import mlflow.artifacts

        if address.startswith("models:/"):
            address = model_location(client, address)
        target = _scratch("lpgnn-model-")
        found = mlflow.artifacts.download_artifacts(
            artifact_uri=address, dst_path=str(target), tracking_uri=resolved
        )
    return Path(found)


def _scratch(prefix: str) -> Path:
    """A folder that goes when this process does."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_run(folder: Path, run_id: str) -> bool:
    """Whether the folder that a server names is here, and is that of the run."""
    try:
        return folder.is_absolute() and RunFolder.open(folder).read_record().id == run_id
    except UserError:
        return False


def _download(client: MlflowClient, run_id: str, names: Sequence[str], into: Path) -> None:
    """The files that are ours by name: a server does not decide what is written where."""
    available = {item.path for item in client.list_artifacts(run_id) if not item.is_dir}
    for name in names:
        if name in available:
            client.download_artifacts(run_id, name, str(into))
