"""The units of a run as `folds.csv` has them, which MLflow has as well."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lpgnn_cli.metrics import ACCURACY, Metric
from lpgnn_cli.runfolder import FINISHED, RunFolder
from lpgnn_cli.runsummary import RunSummary


@dataclass(frozen=True)
class UnitScore:
    """One unit in one metric, accuracy above all: a fraction; NaN where there is none.

    `honest` and `best_epoch_from_zero` are of the test phase from zero; `best_epoch` and
    `per_fold_maximum` are of the curve of training, and `persistent` of its states at the honest
    epoch. Runs of version 0.1 know their persistent states alone. `seed` counts from 0.
    """

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
    persistent: float = math.nan
    best_epoch_from_zero: float = math.nan
    per_fold_maximum: float = math.nan


def read_scores(
    folder: RunFolder, summary: RunSummary, first_seed: int = 0, metric: Metric = ACCURACY
) -> list[UnitScore]:
    """All units of a run; none while there is no summary yet."""
    path = folder.path / "folds.csv"
    if not path.is_file():
        return []
    name = metric.name
    with path.open(encoding="utf-8", newline="") as file:
        units = [
            UnitScore(
                unit=row["unit"],
                fold=int(row["fold"]),
                seed=int(row["seed"]) - first_seed,
                finished=row["state"] == FINISHED,
                best_epoch=_number(row.get(f"{name}_at_cv_best", "")),
                honest=_number(row.get(name, "")),
                persistent=_number(row.get(f"persistent_{name}", "")),
                best_epoch_from_zero=_number(row.get(f"{name}_at_cv_best_from_zero", "")),
                per_fold_maximum=_number(row.get(f"best_{name}", "")),
                train=_number(row.get(f"train_{name}", "")),
                violation=_number(row["violation_mean"]),
                epochs=int(row["epochs"]),
                seconds=_number(row["seconds"]),
            )
            for row in csv.DictReader(file)
        ]
    return with_figures_of_today(units, summary)


def with_figures_of_today(units: Sequence[UnitScore], summary: RunSummary) -> list[UnitScore]:
    """What version 0.1 called honest were persistent states, where states persist. Where the curves
    of training are those of the test phase from zero, too, so is their best epoch."""
    if summary.persistent.metrics and all(math.isnan(unit.persistent) for unit in units):
        return [replace(unit, persistent=unit.honest, honest=math.nan) for unit in units]
    if summary.path_free:
        return [replace(unit, best_epoch_from_zero=unit.best_epoch) for unit in units]
    return list(units)


def _number(text: str) -> float:
    return float(text) if text else math.nan
