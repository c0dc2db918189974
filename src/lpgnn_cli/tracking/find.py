"""The checkpoints behind what a user calls a run: a folder, a file, an MLflow run or model."""

from __future__ import annotations

from pathlib import Path

from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import BEST_ON_TEST, LAST, RunFolder
from lpgnn_cli.tracking.fetch import fetch_model, fetch_run, is_model, is_model_uri
from lpgnn_cli.tracking.models import find_networks
from lpgnn_cli.tracking.named import MLFLOW_ID, find_named
from lpgnn_cli.training.experiment import read_config
from lpgnn_cli.training.schedule import selecting

# What version 0.1 kept of the best epoch: on the validation part, or else on the test part.
BEST_OF_0_1 = "best.pt"


def find_checkpoints(
    run: str, which: str, unit: str | None, tracking_uri: str | None
) -> list[Path]:
    """One file per unit, in the order of the units."""
    path = Path(run)
    if path.is_file():
        return [path]
    if is_model_uri(run):
        path = fetch_model(run, tracking_uri)
    if is_model(path):
        return _of_model(path, run, unit)
    if not path.exists() and MLFLOW_ID.fullmatch(run):
        path, own_unit = fetch_run(run, tracking_uri)
        unit = unit or own_unit
    if not path.exists():
        path = find_named(run)
    folder = RunFolder.open(path)
    record = folder.read_record()
    if record.command == "sweep":
        raise UserError(f"{run} is a sweep: give one of its jobs, which {folder.path}/jobs has.")
    names = [u.name for u in record.units]
    if unit is not None and unit not in names:
        raise UserError(f"{run} has no unit {unit}; it has {', '.join(names)}.")
    # Where no validation part selects an epoch, the last one counts.
    validated = selecting(read_config(folder)) is not None
    file_name = LAST if which == "selected" and not validated else f"{which}.pt"
    files = [folder.unit(name) / file_name for name in (names if unit is None else [unit])]
    found = [file for file in files if file.is_file()]
    if not found:
        raise UserError(_missing(folder, run, file_name, validated))
    return found


def _of_model(folder: Path, run: str, unit: str | None) -> list[Path]:
    """The checkpoints that a logged model carries; nothing else in it is looked at."""
    files = {file.parent.name: file for file in find_networks(folder)}
    if not files:
        raise UserError(f"run={run} is an MLflow model, but none of lpgnn: it has no checkpoint.")
    if unit is not None and unit not in files:
        raise UserError(f"{run} has no unit {unit}; it has {', '.join(files)}.")
    return list(files.values()) if unit is None else [files[unit]]


def _missing(folder: RunFolder, run: str, name: str, validated: bool) -> str:
    if any(folder.path.glob(f"units/*/{BEST_OF_0_1}")):
        chosen = "the validation part" if validated else "test labels"
        return (
            f"{run} has no {name}: version 0.1 wrote {BEST_OF_0_1} instead, chosen on {chosen}; "
            f"give such a file as run= to use it as it is."
        )
    if name == BEST_ON_TEST:
        return f"{run} has no {name}: only runs with keep_best_on_test=true have one."
    return f"{run} has no {name} yet."
