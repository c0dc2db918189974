"""The checkpoints behind what a user calls a run: a folder, a file, or an MLflow run id."""

from __future__ import annotations

import re
from pathlib import Path

from lpgnn_cli.config.training import ValidatedConfig
from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.tracking.fetch import fetch_run
from lpgnn_cli.training.experiment import read_config


def find_checkpoints(
    run: str, which: str, unit: str | None, tracking_uri: str | None
) -> list[Path]:
    """One file per unit, in the order of the units."""
    path = Path(run)
    if path.is_file():
        return [path]
    if not path.exists() and re.fullmatch(r"[0-9a-f]{32}", run):
        path, own_unit = fetch_run(run, tracking_uri)
        unit = unit or own_unit
    if not path.exists():
        raise UserError(
            f"run={run}: there is no such run folder, checkpoint file or MLflow run id; "
            "`lpgnn runs` lists the runs."
        )
    folder = RunFolder.open(path)
    names = [u.name for u in folder.read_record().units]
    if unit is not None and unit not in names:
        raise UserError(f"{run} has no unit {unit}; it has {', '.join(names)}.")
    preferred = [which]
    if which == "selected":
        by_validation = isinstance(read_config(folder).protocol, ValidatedConfig)
        # MLflow has the best checkpoint alone.
        preferred = ["best"] if by_validation else ["last", "best"]
    found: list[Path] = []
    for name in names if unit is None else [unit]:
        candidates = [folder.unit(name) / f"{which}.pt" for which in preferred]
        found += [file for file in candidates if file.is_file()][:1]
    if not found:
        raise UserError(f"{run} has no {which} checkpoint yet.")
    return found
