"""From the units of a run to its reported figures: summary.json, curves.csv and folds.csv."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.reporting.text import csv_text
from lpgnn_cli.reporting.units import (
    Curves,
    UnitData,
    accuracy_metric,
    common_curves,
    failed,
    finished,
    read_units,
)
from lpgnn_cli.runfolder import FINISHED, RunFolder

ALL_SUPERVISED = "train accuracy: all nodes are supervised"


@dataclass(frozen=True)
class FoldRow:
    """One row of folds.csv. Accuracies are of the test part, or of the training part if none is.

    `accuracy` is the honest one, at `selected_epoch`; `accuracy_at_cv_best` is the one at the
    epoch that is best on average over all units; `best_accuracy` is the unit's own best.
    """

    unit: str
    fold: int
    seed: int
    state: str
    epochs: int
    selected_epoch: int
    seconds: float
    accuracy: float
    accuracy_last: float
    accuracy_at_cv_best: float
    best_accuracy: float
    best_epoch: int
    train_accuracy: float
    violation_mean: float
    violation_max: float
    reason: str


def summarise(run: RunFolder) -> dict[str, Any]:
    """Computes summary.json, curves.csv and folds.csv from the units' own files."""
    units = read_units(run)
    curves = common_curves(units)
    metric = accuracy_metric(run, units)
    summary = _summary(units, curves, metric)
    best_epoch = summary.get("cv/best_epoch")
    write_atomically(run.path / "curves.csv", _curves_csv(curves))
    write_atomically(run.path / "folds.csv", _folds_csv(fold_rows(units, metric, best_epoch)))
    run.write_summary(summary)
    return summary


def fold_rows(units: Sequence[UnitData], metric: str, cv_best_epoch: int | None) -> list[FoldRow]:
    return [_fold_row(unit, metric, cv_best_epoch) for unit in units]


def _summary(units: Sequence[UnitData], curves: Curves, metric: str) -> dict[str, Any]:
    done = finished(units)
    summary: dict[str, Any] = {
        "units": len(units),
        "units_finished": len(done),
        "units_failed": len(failed(units)),
        # Time of computing, all units together: the same however many ran side by side.
        "seconds": sum(u.result.seconds for u in units if u.result),
    }
    if not done:
        return summary
    if metric in curves.values:
        best = int(np.argmax(np.nan_to_num(curves.mean(metric), nan=-np.inf)))  # ties: earliest
        summary["cv/best_epoch"] = int(curves.epochs[best])
        summary["cv/accuracy_mean"] = float(curves.mean(metric)[best])
        summary["cv/accuracy_std"] = float(curves.std(metric)[best])
    rule = done[0].result.rule if done[0].result else ""
    summary["honest/rule"] = rule if metric == "test/accuracy" else ALL_SUPERVISED
    honest = _values(u.selected(metric) for u in done)
    summary["honest/accuracy_mean"] = _mean(honest)
    summary["honest/accuracy_std"] = _std(honest)
    summary["honest/epoch_mean"] = _mean([u.result.selected_epoch for u in done if u.result])
    summary["train/accuracy_mean"] = _mean(_values(u.selected("train/accuracy") for u in done))
    for part in dict.fromkeys(("train", metric.split("/")[0])):
        name = f"{part}/violation_mean"
        summary[name] = _mean(_values(u.selected(name) for u in done))
    summary |= _inference(done)
    return {k: v for k, v in summary.items() if not (isinstance(v, float) and math.isnan(v))}


def _inference(done: Sequence[UnitData]) -> dict[str, float]:
    stats = [u.result.inference for u in done if u.result and u.result.inference]
    names = dict.fromkeys(name for s in stats for name in s)
    summary = {
        f"inference/{n}_mean": _mean(_values(s.get(n, np.nan) for s in stats)) for n in names
    }
    if "gain" in names:
        summary["inference/gain_max"] = max(
            _values(s.get("gain", np.nan) for s in stats), default=0
        )
    return summary


def _fold_row(data: UnitData, metric: str, cv_best_epoch: int | None) -> FoldRow:
    curve = data.columns.get(metric, np.empty(0))
    best = int(np.argmax(np.nan_to_num(curve, nan=-np.inf))) if len(curve) else 0
    at_best = None
    if cv_best_epoch and len(curve) and data.state == FINISHED:
        at_best = min(cv_best_epoch, len(curve)) - 1
    result = data.result
    part = metric.split("/")[0]
    return FoldRow(
        unit=data.name,
        fold=data.unit.fold,
        seed=data.unit.seed,
        state=data.state,
        epochs=(result.epochs if result else 0) or data.epochs,
        selected_epoch=result.selected_epoch if result else 0,
        seconds=result.seconds if result else math.nan,
        accuracy=data.selected(metric),
        accuracy_last=float(curve[-1]) if len(curve) else math.nan,
        accuracy_at_cv_best=float(curve[at_best]) if at_best is not None else math.nan,
        best_accuracy=float(curve[best]) if len(curve) else math.nan,
        best_epoch=int(data.columns["epoch"][best]) if len(curve) else 0,
        train_accuracy=data.selected("train/accuracy"),
        violation_mean=data.selected(f"{part}/violation_mean"),
        violation_max=data.selected(f"{part}/violation_max"),
        reason=" ".join(result.reason.split()) if result else "",
    )


def _curves_csv(curves: Curves) -> str:
    columns: dict[str, Iterable[float]] = {"epoch": curves.epochs.astype(int).tolist()}
    for name in curves.values:
        columns[f"{name}_mean"] = curves.mean(name).tolist()
        columns[f"{name}_std"] = curves.std(name).tolist()
    return csv_text(list(columns), zip(*columns.values(), strict=True))


def _folds_csv(rows: Sequence[FoldRow]) -> str:
    return csv_text([f.name for f in fields(FoldRow)], (asdict(row).values() for row in rows))


def _values(values: Iterable[float]) -> list[float]:
    return [v for v in values if math.isfinite(v)]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _std(values: Sequence[float]) -> float:
    return float(np.std(values)) if values else math.nan
