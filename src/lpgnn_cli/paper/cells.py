"""Every cell of the paper's tables with what has been measured for it here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lpgnn_cli.paper.reference import Column, Protocol, ReferenceCell, Row, Table
from lpgnn_cli.paper.runs import PresetRun, UnitScore, newest_match


@dataclass(frozen=True)
class Spread:
    """Mean and population standard deviation over units, in per cent; no std of one unit."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class Measured:
    """What one run says about one cell."""

    run: PresetRun
    units: tuple[UnitScore, ...]
    best_epoch: Spread | None
    honest: Spread | None
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
    on_train = column.part == "train"
    return Measured(
        run=run,
        units=units,
        best_epoch=None if on_train else _spread(unit.best_epoch for unit in units),
        honest=_spread(unit.train if on_train else unit.honest for unit in units),
        violation=_mean(unit.violation for unit in units),
        seconds=math.fsum(unit.seconds for unit in chosen if math.isfinite(unit.seconds)),
        lost=len(chosen) - len(units),
    )


def _spread(values: Iterable[float]) -> Spread | None:
    known = [100 * value for value in values if math.isfinite(value)]
    if not known:
        return None
    return Spread(float(np.mean(known)), float(np.std(known)) if len(known) > 1 else None)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan
