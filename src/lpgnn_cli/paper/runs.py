"""Runs to report: from run folders, from collected results, or from an MLflow store.

All three give the same small files of a run folder, read here in one way.
"""

from __future__ import annotations

import csv
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lpgnn_cli.errors import UserError
from lpgnn_cli.paper.presets import departures
from lpgnn_cli.runfolder import FINISHED, RunFolder, RunRecord, run_folders
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.settings import read_flat_config

SMALL_FILES = ("config.yaml", "run.json", "summary.json", "folds.csv", "curves.csv")


@dataclass(frozen=True)
class UnitScore:
    """One unit: accuracies are fractions, NaN where there is none; `seed` counts from 0."""

    unit: str
    fold: int
    seed: int
    finished: bool
    best_epoch: float
    honest: float
    train: float
    violation: float
    epochs: int
    seconds: float


@dataclass(frozen=True)
class PresetRun:
    """A run that bears the name of a preset."""

    preset: str
    folder: RunFolder
    place: str
    record: RunRecord
    config: dict[str, str]
    summary: RunSummary
    units: tuple[UnitScore, ...]
    # How it departs from the preset; a run that does is no measurement of it.
    departures: tuple[str, ...]

    @property
    def is_finished(self) -> bool:
        return self.record.state == FINISHED and any(unit.finished for unit in self.units)


def runs_in_folders(
    root: Path, presets: Iterable[str], seen_from: Path | None = None
) -> list[PresetRun]:
    """The runs below `root` that are named after one of the presets, the newest first.

    Their places are told as seen from a folder, the current one unless another is given.
    """
    wanted = set(presets)
    runs = []
    for path in run_folders(root):
        run = read_run(RunFolder(path), wanted, os.path.relpath(path, seen_from))
        if run is not None:
            runs.append(run)
    return sorted(runs, key=lambda run: -run.record.started)


def read_run(folder: RunFolder, wanted: set[str], place: str) -> PresetRun | None:
    """A run, or None where it is not one of a preset or its files cannot be read."""
    try:
        config = read_flat_config(folder.config_path)
        if config.get("name") not in wanted:
            return None
        record, summary = folder.read_record(), RunSummary.read(folder)
        units = _read_units(folder.path / "folds.csv", int(config["seed"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return PresetRun(
        preset=config["name"],
        folder=folder,
        place=place,
        record=record,
        config=config,
        summary=summary,
        units=tuple(units),
        departures=tuple(departures(config["name"], config)),
    )


def runs_in_store(uri: str, presets: Iterable[str], into: Path) -> list[PresetRun]:
    """The finished runs of an MLflow store that are named after one of the presets."""
    from mlflow.exceptions import MlflowException

    from lpgnn_cli.tracking.pastruns import parent_runs
    from lpgnn_cli.tracking.store import open_client

    wanted = set(presets)
    runs: list[PresetRun] = []
    try:
        client = open_client(uri)
        for found in parent_runs(client):
            if found.data.params.get("name") not in wanted:
                continue
            target = Path(tempfile.mkdtemp(prefix=f"{found.info.run_id}-", dir=into))
            available = {item.path for item in client.list_artifacts(found.info.run_id)}
            for name in [*SMALL_FILES, "figures"]:
                if name in available:
                    client.download_artifacts(found.info.run_id, name, str(target))
            place = f"MLflow run {found.info.run_id}"
            run = read_run(RunFolder(target), wanted, place)
            runs += [run] if run else []
    except MlflowException as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"the MLflow store {uri} cannot be read: {reason}") from error
    return sorted(runs, key=lambda run: -run.record.started)


def newest_match(runs: Sequence[PresetRun], presets: Sequence[str]) -> PresetRun | None:
    """The newest finished run that is just what one of the presets says."""
    fitting = [
        run for run in runs if run.preset in presets and run.is_finished and not run.departures
    ]
    return max(fitting, key=lambda run: run.record.started, default=None)


def _read_units(path: Path, first_seed: int) -> list[UnitScore]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            UnitScore(
                unit=row["unit"],
                fold=int(row["fold"]),
                seed=int(row["seed"]) - first_seed,
                finished=row["state"] == FINISHED,
                best_epoch=_number(row["accuracy_at_cv_best"]),
                honest=_number(row["accuracy"]),
                train=_number(row["train_accuracy"]),
                violation=_number(row["violation_mean"]),
                epochs=int(row["epochs"]),
                seconds=_number(row["seconds"]),
            )
            for row in csv.DictReader(file)
        ]


def _number(text: str) -> float:
    return float(text) if text else math.nan
