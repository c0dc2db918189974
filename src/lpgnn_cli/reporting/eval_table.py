"""The table that `lpgnn eval` ends with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from lpgnn_cli.formatting import compact, count, metric_mean_std, per_cent
from lpgnn_cli.metrics import (
    ACCURACY,
    CONVERGED,
    FROM_ZERO_ACCURACY,
    TEST,
    TRAIN,
    VIOLATION_MEAN,
)
from lpgnn_cli.reporting.text import is_screen
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.runsummary import EvalSummary

if TYPE_CHECKING:
    from lpgnn_cli.training.scoring import Score

TEST_ACCURACY = ACCURACY.on(TEST)


def evaluation_table(
    console: Console,
    folder: RunFolder,
    names: Sequence[str],
    scores: Sequence[Score],
    summary: EvalSummary,
) -> None:
    """One row per unit: what was recorded, what was found again, and from zero states."""
    known = any(score.recorded for score in scores)
    table = Table(box=box.SIMPLE if is_screen(console) else None, pad_edge=False)
    table.add_column("unit")
    if known:
        table.add_column("recorded", justify="right")
    table.add_column("accuracy", justify="right")
    table.add_column("violation", justify="right")
    if known:
        table.add_column("from zero", justify="right")
    table.add_column("converged", justify="right")
    for name, score in zip(names, scores, strict=True):
        row = [name]
        if known:
            row.append(per_cent(_recorded(score)))
        row.append(per_cent(score.metrics[TEST_ACCURACY]))
        row.append(compact(score.metrics.get(VIOLATION_MEAN.on(TEST), math.nan)))
        if known:
            row.append(per_cent(score.inference.get(FROM_ZERO_ACCURACY.name, math.nan)))
        row.append(per_cent(score.inference.get(CONVERGED.name, math.nan), 0))
        table.add_row(*row)
    console.print(table)
    accuracy = summary.scored.accuracy
    text = metric_mean_std(TEST_ACCURACY, accuracy.mean, accuracy.std, summary.units)
    console.print(f"accuracy     {text} over {count(summary.units, 'unit')}", highlight=False)
    console.print(
        f"predictions  {folder.path}/units/*/predictions.csv", highlight=False, soft_wrap=True
    )
    off = [n for n, s in zip(names, scores, strict=True) if _differs(s)]
    if off:
        console.print(
            f"warning: {', '.join(off)} did not give the recorded accuracy again; was it trained "
            "on another device or version?",
            highlight=False,
        )


def _recorded(score: Score) -> float:
    return score.recorded.get(TEST_ACCURACY, score.recorded.get(ACCURACY.on(TRAIN), math.nan))


def _differs(score: Score) -> bool:
    recorded = score.recorded.get(TEST_ACCURACY)
    return recorded is not None and abs(recorded - score.metrics[TEST_ACCURACY]) > 1e-9
