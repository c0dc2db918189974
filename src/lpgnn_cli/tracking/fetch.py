"""A run folder from an MLflow run id: the one on this machine, or what the store has of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lpgnn_cli.errors import UserError
from lpgnn_cli.tracking.mirror import PARENT_TAG, RUN_TAG, UNIT_TAG
from lpgnn_cli.tracking.store import open_client, resolve_uri


def fetch_run(run_id: str, uri: str | None) -> tuple[Path, str | None]:
    """The folder of the run, and the unit if the id is that of a child run."""
    from mlflow.exceptions import MlflowException

    resolved = resolve_uri(uri)
    client = open_client(resolved)
    try:
        tags = client.get_run(run_id).data.tags
        unit = tags.get(UNIT_TAG)
        parent_id = tags[PARENT_TAG] if unit else run_id
        parent = client.get_run(parent_id)
        folder = Path(parent.data.tags.get("folder", ""))
        if (folder / "run.json").is_file():
            return folder, unit
        target = Path(tempfile.mkdtemp(prefix="lpgnn-run-"))
        client.download_artifacts(parent_id, "", str(target))
        children = client.search_runs(
            [parent.info.experiment_id],
            filter_string=f"tags.`{RUN_TAG}` = '{tags[RUN_TAG]}'",
            max_results=5000,
        )
        for child in children:
            name = child.data.tags.get(UNIT_TAG)
            if name and unit in (None, name):
                destination = target / "units" / name
                destination.mkdir(parents=True)
                client.download_artifacts(child.info.run_id, "", str(destination))
    except (MlflowException, KeyError) as error:
        raise UserError(f"MLflow run {run_id} is unavailable from {resolved}: {error}.") from error
    return target, unit
