"""Which points of a long curve go to MLflow; the files of the run folder have all of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lpgnn_cli.metrics import EPOCH, WHEN

# MLflow takes 0.4 kB per point: 6,000 epochs of three layers stay within 15 MB.
MOST_POINTS = 800
# The last point, the highest and the lowest come on top.
EXTRA_POINTS = 3

Row = Mapping[str, float]


def stride(epochs: int) -> int:
    """Every how many epochs one is sent, for so many epochs in all."""
    return max(1, math.ceil(epochs / (MOST_POINTS - EXTRA_POINTS)))


def is_sent(row: Row, stride: int) -> bool:
    """Whether a row goes while the run grows: the first one and every so many after it."""
    return (int(row[EPOCH]) - 1) % stride == 0


def end_and_extremes(rows: Sequence[Row], stride: int) -> Iterator[tuple[str, int]]:
    """Names, and indices of rows, of what was passed over and yet belongs to the curve."""
    for name in rows[-1] if rows else ():
        if name in WHEN:
            continue
        values = [(row[name], index) for index, row in enumerate(rows) if not math.isnan(row[name])]
        chosen = {len(rows) - 1, *(pick(values)[1] for pick in (min, max) if values)}
        for index in sorted(chosen):
            if not is_sent(rows[index], stride):
                yield name, index
