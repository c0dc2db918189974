"""Which measured rows of a table are compared, and what the paired tests say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lpgnn_cli.paper.cells import Cell, Measured
from lpgnn_cli.paper.reference import Protocol, Table
from lpgnn_cli.reporting.significance import (
    PairedTest,
    UnitFigure,
    compare_units,
    why_unpaired,
)


@dataclass(frozen=True)
class Comparison:
    """Two measured rows of one column; `reason` says why they cannot be paired."""

    first: Cell
    second: Cell
    tests: dict[Protocol, PairedTest]
    reason: str = ""


def compare_rows(table: Table, cells: Sequence[Cell]) -> list[Comparison]:
    """Every comparison that the table asks for and of which both sides have been measured."""
    by_place = {(cell.row.id, cell.column.id): cell for cell in cells if cell.measured}
    comparisons = []
    for first, second in table.compare:
        for column in table.columns:
            one, other = by_place.get((first, column.id)), by_place.get((second, column.id))
            if one and other and column.part == "test":
                comparisons.append(_compare(one, other))
    return comparisons


def _compare(first: Cell, second: Cell) -> Comparison:
    one, other = first.measured, second.measured
    assert one is not None
    assert other is not None
    if reason := why_unpaired(one.run.record, other.run.record):
        return Comparison(first, second, {}, reason)
    protocols: tuple[Protocol, Protocol] = ("best_epoch", "honest")
    tests: dict[Protocol, PairedTest] = {}
    for protocol in protocols:
        test = compare_units(
            _from_zero(one, protocol),
            _from_zero(other, protocol),
            one.run.settings.get("protocol.name", ""),
        )
        if test is not None:
            tests[protocol] = test
    if tests:
        return Comparison(first, second, tests)
    unknown = any(math.isnan(unit.honest) for unit in (*one.units, *other.units))
    reason = "persistent states only" if unknown else "fewer than two pairs"
    return Comparison(first, second, {}, f"{reason}: no test")


def _from_zero(measured: Measured, protocol: Protocol) -> list[UnitFigure]:
    """In per cent."""
    return [
        UnitFigure(
            unit.unit,
            unit.fold,
            unit.seed,
            100 * (unit.best_epoch_from_zero if protocol == "best_epoch" else unit.honest),
        )
        for unit in measured.units
    ]
