"""Runs by what people call them: a path, a name, an MLflow run id."""

from __future__ import annotations

import re
from pathlib import Path

from lpgnn_cli.config.suggest import did_you_mean
from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import RunFolder, RunRecord, run_folders, runs_root
from lpgnn_cli.tracking.fetch import fetch_run

MLFLOW_ID = re.compile("[0-9a-f]{32}")


def find_run(run: str, tracking_uri: str | None) -> RunFolder:
    """The folder of a run by its path, its name, or its MLflow id."""
    path = Path(run)
    if path.is_dir():
        return RunFolder.open(path)
    if MLFLOW_ID.fullmatch(run):
        return RunFolder.open(fetch_run(run, tracking_uri, checkpoints=False)[0])
    return RunFolder.open(find_named(run))


def find_named(run: str) -> Path:
    """The newest run of that name, or the one whose folder is called so."""
    known = {folder: record for folder in run_folders(runs_root()) if (record := _record(folder))}
    named = [folder for folder, record in known.items() if run in (record.name, folder.name)]
    if not named:
        names = [name for folder, record in known.items() for name in (record.name, folder.name)]
        raise UserError(
            f"{run}: there is no such run folder, run name, checkpoint file, MLflow run id or "
            f"model. {did_you_mean(run, names)} `lpgnn runs` lists the runs."
        )
    return max(named, key=lambda folder: known[folder].started)


def _record(folder: Path) -> RunRecord | None:
    try:
        return RunFolder(folder).read_record()
    except UserError:
        return None
