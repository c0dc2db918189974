"""Every cell of the paper's tables with what has been measured for it here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lpgnn_cli.paper.reference import Column, Protocol, ReferenceCell, Row, Table
from lpgnn_cli.paper.runs import PresetRun, newest_match
from lpgnn_cli.reporting.scores import UnitScore


@dataclass(frozen=True)
class Spread:
    """Mean and population standard deviation over units, in per cent; no std of one unit.

    `persistent`: of the states of training, as nothing is known from zero.
    """

    mean: float
    std: float | None
    persistent: bool = False


@dataclass(frozen=True)
class Measured:
    """What one run says about one cell.

    `best_epoch` and `honest` are from zero as far as that is known, `curve_best` and
    `per_fold_maximum` of the curves of training, `persistent` of its states at the honest epoch.
    """

    run: PresetRun
    units: tuple[UnitScore, ...]
    best_epoch: Spread | None
    curve_best: Spread | None
    per_fold_maximum: Spread | None
    honest: Spread | None
    persistent: Spread | None
    violation: float
    seconds: float
    lost: int

    @property
    def folds(self) -> int:
        return len({unit.fold for unit in self.units})

    @property
    def seeds(self) -> int:
        return len({unit.seed for unit in self.units})

    @property
    def rule(self) -> str:
        return str(self.run.summary.honest.rule)

    @property
    def from_zero_minus_persistent(self) -> float | None:
        """In percentage points, at the honest epoch."""
        if self.honest is None or self.honest.persistent or self.persistent is None:
            return None
        return self.honest.mean - self.persistent.mean

    def value(self, protocol: Protocol) -> Spread | None:
        return self.best_epoch if protocol == "best_epoch" else self.honest


@dataclass(frozen=True)
class Cell:
    """One row in one column."""

    table: Table
    row: Row
    column: Column
    reference: ReferenceCell
    measured: Measured | None

    @property
    def headline(self) -> Spread | None:
        """The measured value that is like the paper's."""
        return self.measured.value(self.table.protocol) if self.measured else None

    @property
    def difference(self) -> float | None:
        """Measured minus paper, in percentage points."""
        if self.headline is None or self.reference.paper is None:
            return None
        return self.headline.mean - self.reference.paper.mean

    @property
    def can_run(self) -> bool:
        return bool(self.reference.presets)


def fill(table: Table, runs: Sequence[PresetRun]) -> list[Cell]:
    """The cells of a table, row by row; `measured` is None where nothing has been run."""
    return [
        Cell(table, row, column, reference, measure(runs, reference, column))
        for row in table.rows
        for column in table.columns
        if (reference := row.cells.get(column.id)) is not None
    ]


def measure(runs: Sequence[PresetRun], reference: ReferenceCell, column: Column) -> Measured | None:
    run = newest_match(runs, reference.presets)
    if run is None:
        return None
    chosen = [unit for unit in run.units if column.seed in (None, unit.seed)]
    units = tuple(unit for unit in chosen if unit.finished)
    if not units:
        return None
    if column.part == "train":
        # Training graphs are measured in the step that trains on them.
        states = bool(run.summary.persistent.metrics)
        curve, from_zero, maximum, persistent = None, None, None, None
        honest = _spread((unit.train for unit in units), persistent=states)
    else:
        curve = _spread(unit.best_epoch for unit in units)
        from_zero = _spread(unit.best_epoch_from_zero for unit in units)
        maximum = _spread(unit.per_fold_maximum for unit in units)
        persistent = _spread(unit.persistent for unit in units)
        honest = _spread(unit.honest for unit in units) or _mean_alone(run, units, chosen)
    return Measured(
        run=run,
        units=units,
        best_epoch=from_zero or _marked(curve),
        curve_best=curve,
        per_fold_maximum=maximum,
        honest=honest or _marked(persistent),
        persistent=persistent,
        violation=_mean(unit.violation for unit in units),
        seconds=math.fsum(unit.seconds for unit in chosen if math.isfinite(unit.seconds)),
        lost=len(chosen) - len(units),
    )


def _spread(values: Iterable[float], persistent: bool = False) -> Spread | None:
    known = [100 * value for value in values if math.isfinite(value)]
    if not known:
        return None
    std = float(np.std(known)) if len(known) > 1 else None
    return Spread(float(np.mean(known)), std, persistent)


def _marked(spread: Spread | None) -> Spread | None:
    return replace(spread, persistent=True) if spread else None


def _mean_alone(
    run: PresetRun, units: Sequence[UnitScore], chosen: Sequence[UnitScore]
) -> Spread | None:
    """Of version 0.1 the mean from zero over all units of a run is known, and no more."""
    mean = run.summary.honest.accuracy.mean
    if len(chosen) < len(run.units) or len(units) < len(chosen) or not math.isfinite(mean):
        return None
    return Spread(100 * mean, None)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan
