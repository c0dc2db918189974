"""Whether two runs differ by more than chance: paired tests over shared folds.

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

from lpgnn_cli.runfolder import RunRecord

# Up to this many pairs all sign patterns are tried, above it this many random ones.
EXACT_PAIRS = 16
RANDOM_PATTERNS = 100_000
# Public splits of nodes are drawn anew each time: half of the nodes to train, a quarter to test.
MASKS_OVERLAP = 0.5


@dataclass(frozen=True)
class UnitFigure:
    """One figure of one unit; NaN where it has none."""

    unit: str
    fold: int
    seed: int
    value: float


@dataclass(frozen=True)
class PairedTest:
    """The mean difference, in the unit of the figures, and two p-values for it."""

    pairs: int
    difference: float
    p_flips: float
    p_corrected: float


def why_unpaired(one: RunRecord, other: RunRecord) -> str:
    """Why the folds of two runs are no pairs; empty where they are."""
    if one.dataset_fingerprint != other.dataset_fingerprint:
        return "trained on other graphs: not paired"
    if one.split_fingerprint != other.split_fingerprint:
        return "trained on other folds: not paired"
    return ""


def compare_units(
    one: Sequence[UnitFigure], other: Sequence[UnitFigure], protocol: str
) -> PairedTest | None:
    """First minus second under a protocol, by name; None with fewer than two pairs."""
    differences = paired_differences(one, other)
    if len(differences) < 2:
        return None
    return paired_test(differences, overlap(_folds(one), protocol))


def paired_differences(one: Sequence[UnitFigure], other: Sequence[UnitFigure]) -> list[float]:
    """First minus second: one per fold, or per seed of generated data."""
    theirs = {figure.unit: figure.value for figure in other}
    by_fold = _folds(one) > 1
    groups: dict[int, list[float]] = {}
    for mine in one:
        difference = mine.value - theirs.get(mine.unit, math.nan)
        if math.isfinite(difference):
            groups.setdefault(mine.fold if by_fold else mine.seed, []).append(difference)
    return [math.fsum(group) / len(group) for group in groups.values()]


def overlap(folds: int, protocol: str) -> float:
    """Of k folds each tests on 1/k of the graphs; with a validation part it trains on less."""
    if folds == 1:
        return 0.0
    if protocol == "masks":
        return MASKS_OVERLAP
    parts = 2 if protocol == "holdout" else 1
    return 1 / (folds - parts)


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


def _folds(figures: Sequence[UnitFigure]) -> int:
    return len({figure.fold for figure in figures})
