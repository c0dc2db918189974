"""Whether two measured rows differ by more than chance: paired tests over shared folds.

Folds are shared between models, so differences are taken fold by fold. Initialisations of one fold
share its graphs: they are averaged first, and the fold counts once. Generated tasks have one fold
with new graphs for every seed: there each seed counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpgnn_cli.paper.cells import Cell, Measured
from lpgnn_cli.paper.reference import Protocol, Table
from lpgnn_cli.paper.runs import UnitScore

# Up to this many pairs all sign patterns are tried, above it this many random ones.
EXACT_PAIRS = 16
RANDOM_PATTERNS = 100_000
# Public splits of nodes are drawn anew each time: half of the nodes to train, a quarter to test.
MASKS_OVERLAP = 0.5


@dataclass(frozen=True)
class PairedTest:
    """The mean difference in percentage points, and two p-values for it."""

    pairs: int
    difference: float
    p_flips: float
    p_corrected: float


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
    if one.run.record.dataset_fingerprint != other.run.record.dataset_fingerprint:
        return Comparison(first, second, {}, "trained on other graphs: not paired")
    if one.run.record.split_fingerprint != other.run.record.split_fingerprint:
        return Comparison(first, second, {}, "trained on other folds: not paired")
    protocols: tuple[Protocol, Protocol] = ("best_epoch", "honest")
    tests: dict[Protocol, PairedTest] = {}
    for protocol in protocols:
        differences = paired_differences(one, other, protocol)
        if len(differences) >= 2:
            tests[protocol] = paired_test(differences, _overlap(one))
    if tests:
        return Comparison(first, second, tests)
    unknown = any(math.isnan(unit.honest) for unit in (*one.units, *other.units))
    reason = "persistent states only" if unknown else "fewer than two pairs"
    return Comparison(first, second, {}, f"{reason}: no test")


def paired_differences(one: Measured, other: Measured, protocol: Protocol) -> list[float]:
    """First minus second, from zero, in percentage points: one per fold, or per seed of generated
    data."""
    theirs = {unit.unit: _from_zero(unit, protocol) for unit in other.units}
    by_fold = one.folds > 1
    groups: dict[int, list[float]] = {}
    for unit in one.units:
        difference = 100 * (_from_zero(unit, protocol) - theirs.get(unit.unit, math.nan))
        if math.isfinite(difference):
            groups.setdefault(unit.fold if by_fold else unit.seed, []).append(difference)
    return [math.fsum(group) / len(group) for group in groups.values()]


def _from_zero(unit: UnitScore, protocol: Protocol) -> float:
    return unit.best_epoch_from_zero if protocol == "best_epoch" else unit.honest


def paired_test(differences: Sequence[float], overlap: float) -> PairedTest:
    """Exact sign flips, and the t-test with the variance corrected by test / training size."""
    values = np.asarray(differences, dtype=np.float64)
    return PairedTest(
        pairs=len(values),
        difference=float(values.mean()),
        p_flips=sign_flip_p(values),
        p_corrected=corrected_t_p(values, overlap),
    )


def sign_flip_p(values: NDArray[np.float64]) -> float:
    """The share of sign patterns whose mean is at least as far from zero as the one observed."""
    pairs = len(values)
    if pairs <= EXACT_PAIRS:
        patterns = (np.arange(2**pairs)[:, None] >> np.arange(pairs)) & 1
        extra = 0
    else:
        random = np.random.RandomState(0)
        patterns = random.randint(0, 2, size=(RANDOM_PATTERNS, pairs))
        extra = 1  # the pattern that was observed belongs to them
    sums = np.abs((2 * patterns - 1) @ values)
    # Equal sums in another order of adding differ in their last digits.
    as_far = int((sums >= abs(values.sum()) - 1e-9).sum())
    return (as_far + extra) / (len(patterns) + extra)


def corrected_t_p(values: NDArray[np.float64], overlap: float) -> float:
    """Nadeau and Bengio: training sets of folds overlap, which a plain t-test takes for evidence.

    `overlap` is the size of a test part over that of a training part, 0 for independent data.
    """
    from scipy import stats

    pairs = len(values)
    variance = float(values.var(ddof=1))
    if variance == 0:
        return 1.0 if values[0] == 0 else 0.0
    t = float(values.mean()) / math.sqrt((1 / pairs + overlap) * variance)
    return float(2 * stats.t.sf(abs(t), df=pairs - 1))


def _overlap(measured: Measured) -> float:
    """Of k folds each tests on 1/k of the graphs; with a validation part it trains on less."""
    folds = measured.folds
    if folds == 1:
        return 0.0
    if measured.run.settings.get("protocol.name") == "masks":
        return MASKS_OVERLAP
    parts = 2 if measured.run.settings.get("protocol.name") == "holdout" else 1
    return 1 / (folds - parts)
