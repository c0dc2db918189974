"""Runs to report, from run folders or from an MLflow store, which has the same small files.

Those that were collected before are read by `results`.
"""

from __future__ import annotations

import csv
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from lpgnn_cli.config.effects import essence
from lpgnn_cli.metrics import TEST, VIOLATION_MEAN, mean_of
from lpgnn_cli.paper.presets import departures
from lpgnn_cli.paper.reference import Preset, presets_by_name
from lpgnn_cli.reporting.scores import UnitScore, read_scores
from lpgnn_cli.runfolder import FINISHED, RunFolder, RunRecord, run_folders
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.settings import read_flat_config

if TYPE_CHECKING:
    from mlflow import MlflowClient

SMALL_FILES = ("config.yaml", "run.json", "summary.json", "folds.csv", "curves.csv")
# Pictures of two-dimensional states that a run draws itself.
EMBEDDINGS = ("embedding.png", "embedding.gif")
TEST_VIOLATION = mean_of(VIOLATION_MEAN.on(TEST))

# Epochs with a value each.
Curve = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class PresetRun:
    """A run that bears the name of a preset."""

    preset: Preset
    # Where it is, for people.
    place: str
    record: RunRecord
    # Those that affect results, flat.
    settings: dict[str, str]
    summary: RunSummary
    units: tuple[UnitScore, ...]
    # Mean violation on the test part.
    violation: Curve
    embeddings: tuple[Path, ...]

    @cached_property
    def departures(self) -> list[str]:
        """How it departs from the preset; a run that does is no measurement of it."""
        return departures(self.preset, self.settings)

    @property
    def is_finished(self) -> bool:
        return self.record.state == FINISHED and any(unit.finished for unit in self.units)


def runs_in_folders(root: Path) -> list[PresetRun]:
    """The runs below `root` that are named after a preset, the newest first."""
    found = [read_run(RunFolder(path), os.path.relpath(path)) for path in run_folders(root)]
    return newest_first([run for run in found if run is not None])


def read_run(folder: RunFolder, place: str) -> PresetRun | None:
    """A run, or None where it is not one of a preset or its files cannot be read."""
    try:
        config = read_flat_config(folder.config_path)
        preset = presets_by_name().get(config.get("name", ""))
        if preset is None:
            return None
        record, summary = folder.read_record(), RunSummary.read(folder)
        record.state = folder.actual_state(record)
        units = read_scores(folder, summary, int(config["seed"]), summary.metric)
        violation = _read_curve(folder.path / "curves.csv", TEST_VIOLATION)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return PresetRun(
        preset=preset,
        place=place,
        record=record,
        settings=essence(config),
        summary=summary,
        units=tuple(units),
        violation=violation,
        embeddings=tuple(p for n in EMBEDDINGS if (p := folder.figures / n).is_file()),
    )


def runs_in_store(uri: str, into: Path) -> list[PresetRun]:
    """The finished runs of an MLflow store that are named after a preset, the newest first."""
    from lpgnn_cli.tracking.pastruns import parent_runs
    from lpgnn_cli.tracking.store import open_client, reading_store

    runs: list[PresetRun] = []
    with reading_store(uri):
        client = open_client(uri)
        for found in parent_runs(client):
            if found.data.params.get("name") not in presets_by_name():
                continue
            folder = download(client, found.info.run_id, SMALL_FILES, EMBEDDINGS, into)
            run = read_run(folder, f"MLflow run {found.info.run_id}")
            runs += [run] if run else []
    return newest_first(runs)


def download(
    client: MlflowClient, run_id: str, files: Sequence[str], figures: Sequence[str], into: Path
) -> RunFolder:
    """The files of a run in a store that are asked for, as far as it has them."""
    target = Path(tempfile.mkdtemp(prefix=f"{run_id}-", dir=into))
    available = {item.path for item in client.list_artifacts(run_id)}
    if figures and "figures" in available:
        available |= {item.path for item in client.list_artifacts(run_id, "figures")}
    for name in (*files, *(f"figures/{figure}" for figure in figures)):
        if name in available:
            client.download_artifacts(run_id, name, str(target))
    return RunFolder(target)


def newest_first(runs: Sequence[PresetRun]) -> list[PresetRun]:
    return sorted(runs, key=lambda run: -run.record.started)


def newest_match(runs: Sequence[PresetRun], presets: Sequence[Preset]) -> PresetRun | None:
    """The newest finished run that is just what one of the presets says."""
    fitting = [
        run for run in runs if run.preset in presets and run.is_finished and not run.departures
    ]
    return max(fitting, key=lambda run: run.record.started, default=None)


def _read_curve(path: Path, metric: str) -> Curve:
    """The epochs in which a metric has a finite value."""
    if not path.is_file():
        return ()
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(int(r["epoch"]), float(r[metric])) for r in csv.DictReader(file) if r.get(metric)]
    return tuple((epoch, value) for epoch, value in rows if math.isfinite(value))
