"""From the units of a run to what it reports: summary.json, curves.csv and folds.csv."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.formatting import csv_text
from lpgnn_cli.metrics import (
    EPOCH,
    GAIN,
    TRAIN,
    VIOLATION_MAX,
    VIOLATION_MEAN,
    Metric,
    leading_on,
    mean_of,
    score_metrics,
    std_of,
)
from lpgnn_cli.reporting.units import (
    Array,
    Curves,
    UnitData,
    all_supervised,
    common_curves,
    failed,
    finished,
    read_units,
    scored_part,
)
from lpgnn_cli.runfolder import FINISHED, Rule, RunFolder, UnitResult
from lpgnn_cli.runsummary import MeanStd, RunSummary, Selection, training_metrics


@dataclass(frozen=True)
class FoldRow:
    """One row of folds.csv, in one metric of the test part, or of the training part if none is.

    `figure` is the honest one, of the test phase from zero at `selected_epoch`, and `persistent`
    that of the states of training there. Those of other epochs are of the curves of training,
    unless they say otherwise: `at_cv_best` at the epoch that is best on average over all units,
    `best` at the unit's own best. The columns of the file are named after the metric.
    """

    unit: str
    fold: int
    seed: int
    state: str
    epochs: int
    selected_epoch: int
    seconds: float
    figure: float
    persistent: float
    last: float
    at_cv_best: float
    at_cv_best_from_zero: float
    best: float
    best_epoch: int
    train: float
    violation_mean: float
    violation_max: float
    reason: str


# The columns of folds.csv that have the name of the metric in them.
_COLUMNS = {
    "figure": "{}",
    "persistent": "persistent_{}",
    "last": "{}_last",
    "at_cv_best": "{}_at_cv_best",
    "at_cv_best_from_zero": "{}_at_cv_best_from_zero",
    "best": "best_{}",
    "train": "train_{}",
}


def summarise(run: RunFolder) -> RunSummary:
    """Computes summary.json, curves.csv and folds.csv from the units' own files."""
    units = read_units(run)
    curves = common_curves(units)
    part = scored_part(units)
    summary = _summary(units, curves, part, all_supervised(run))
    write_atomically(run.path / "curves.csv", _curves_csv(curves))
    rows = fold_rows(units, part, summary.best_epoch, summary.metric)
    write_atomically(run.path / "folds.csv", _folds_csv(rows, summary.metric))
    run.write_summary(summary.to_dict())
    return summary


def fold_rows(
    units: Sequence[UnitData], part: str, best_epoch: int | None, metric: Metric
) -> list[FoldRow]:
    """`best_epoch`: the one that is best on average over all units."""
    return [_fold_row(unit, part, best_epoch, metric) for unit in units]


def _summary(units: Sequence[UnitData], curves: Curves, part: str, supervised: bool) -> RunSummary:
    done = finished(units)
    counted = RunSummary(
        units=len(units),
        units_finished=len(done),
        units_failed=len(failed(units)),
        seconds=sum(u.result.seconds for u in units if u.result),
    )
    if not done:
        return counted
    results = [unit.result for unit in done if unit.result]
    optimistic = _at_best_epoch(curves, part)
    rule = Rule.ALL_SUPERVISED if supervised or part == TRAIN else results[0].rule
    epoch = float(np.mean([r.selected_epoch for r in results]))
    return replace(
        counted,
        optimistic=optimistic,
        best_from_zero=_over_units(
            Rule.BEST_MEAN_EPOCH, [_rescored(r, optimistic.epoch) for r in results]
        ),
        per_fold_maximum=_at_own_best_epochs(curves, part),
        honest=_over_units(rule, [r.from_zero for r in results], epoch),
        persistent=_over_units(rule, [r.persistent for r in results]),
        train=_means({m.name: _selected(done, m.on(TRAIN)) for m in training_metrics()}),
        violation=_means(
            {one: _selected(done, VIOLATION_MEAN.on(one)) for one in dict.fromkeys((TRAIN, part))}
        ),
        inference=_inference(done),
    )


def _at_best_epoch(curves: Curves, part: str) -> Selection:
    """All metrics at the epoch whose mean over the units is the best in the metric of the run."""
    leader = leading_on(part, curves.values)
    if leader.on(part) not in curves.values:
        return Selection(Rule.BEST_MEAN_EPOCH)
    best = int(_best(curves.mean(leader.on(part)), leader))
    metrics = {
        metric.name: MeanStd(float(curves.mean(name)[best]), float(curves.std(name)[best]))
        for metric in score_metrics()
        if (name := metric.on(part)) in curves.values
    }
    return Selection(Rule.BEST_MEAN_EPOCH, metrics, int(curves.epochs[best]))


def _at_own_best_epochs(curves: Curves, part: str) -> Selection:
    """All metrics at the epoch that is the best in the metric of the run, unit by unit."""
    leader = leading_on(part, curves.values)
    if leader.on(part) not in curves.values:
        return Selection(Rule.BEST_OWN_EPOCH)
    best = _best(curves.values[leader.on(part)], leader)
    names = {m.name: m.on(part) for m in score_metrics() if m.on(part) in curves.values}
    units = [
        {metric: float(curves.values[name][unit, epoch]) for metric, name in names.items()}
        for unit, epoch in enumerate(best)
    ]
    return _over_units(Rule.BEST_OWN_EPOCH, units)


def _best(values: Array, metric: Metric) -> NDArray[np.int64]:
    """The position of the best value along the last axis; ties: the earliest."""
    worth = values if metric.larger_is_better else -values
    return np.asarray(np.argmax(np.nan_to_num(worth, nan=-np.inf), axis=-1))


def _over_units(
    rule: Rule, units: Sequence[Mapping[str, float]], epoch: float = math.nan
) -> Selection:
    """The metrics of class scores that all units have."""
    metrics = {}
    for metric in score_metrics():
        values = _finite(unit.get(metric.name, math.nan) for unit in units)
        if len(values) == len(units):
            metrics[metric.name] = MeanStd(float(np.mean(values)), float(np.std(values)))
    return Selection(rule, metrics, epoch)


def _rescored(result: UnitResult | None, best_epoch: float) -> Mapping[str, float]:
    """From zero at the best mean epoch, if that is still the one that was scored."""
    if result is None or result.best_mean_epoch != min(best_epoch, result.epochs):
        return {}
    return result.best_mean_epoch_from_zero


def _inference(done: Sequence[UnitData]) -> dict[str, float]:
    stats = [u.result.inference for u in done if u.result and u.result.inference]
    names = dict.fromkeys(name for s in stats for name in s)
    values = {name: _finite(s.get(name, np.nan) for s in stats) for name in names}
    summary = {mean_of(name): mean for name, mean in _means(values).items()}
    if GAIN.name in names:
        summary[f"{GAIN.name}_max"] = max(values[GAIN.name], default=0)
    return summary


def _fold_row(data: UnitData, part: str, cv_best_epoch: int | None, metric: Metric) -> FoldRow:
    curve = data.columns.get(metric.on(part), np.empty(0))
    best = int(_best(curve, metric)) if len(curve) else 0
    at_best = None
    if cv_best_epoch and len(curve) and data.state == FINISHED:
        at_best = min(cv_best_epoch, len(curve)) - 1
    result = data.result
    return FoldRow(
        unit=data.name,
        fold=data.unit.fold,
        seed=data.unit.seed,
        state=data.state,
        epochs=(result.epochs if result else 0) or data.epochs,
        selected_epoch=result.selected_epoch if result else 0,
        seconds=result.seconds if result else math.nan,
        figure=(result.from_zero if result else {}).get(metric.name, math.nan),
        persistent=(result.persistent if result else {}).get(metric.name, math.nan),
        last=float(curve[-1]) if len(curve) else math.nan,
        at_cv_best=float(curve[at_best]) if at_best is not None else math.nan,
        at_cv_best_from_zero=_rescored(result, cv_best_epoch or 0).get(metric.name, math.nan),
        best=float(curve[best]) if len(curve) else math.nan,
        best_epoch=int(data.columns[EPOCH][best]) if len(curve) else 0,
        train=data.selected(metric.on(TRAIN)),
        violation_mean=data.selected(VIOLATION_MEAN.on(part)),
        violation_max=data.selected(VIOLATION_MAX.on(part)),
        reason=" ".join(result.reason.split()) if result else "",
    )


def _curves_csv(curves: Curves) -> str:
    columns: dict[str, Iterable[float]] = {EPOCH: curves.epochs.astype(int).tolist()}
    for name in curves.values:
        columns[mean_of(name)] = curves.mean(name).tolist()
        columns[std_of(name)] = curves.std(name).tolist()
    return csv_text(list(columns), zip(*columns.values(), strict=True))


def _folds_csv(rows: Sequence[FoldRow], metric: Metric) -> str:
    header = [_COLUMNS.get(f.name, f.name).format(metric.name) for f in fields(FoldRow)]
    return csv_text(header, (asdict(row).values() for row in rows))


def _selected(units: Sequence[UnitData], name: str) -> list[float]:
    """A metric at the selected epochs, of the units that have it."""
    return _finite(unit.selected(name) for unit in units)


def _finite(values: Iterable[float]) -> list[float]:
    return [v for v in values if math.isfinite(v)]


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of each, without those that have no value."""
    return {name: float(np.mean(own)) for name, own in values.items() if own}
