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
    TEST,
    TRAIN,
    VIOLATION_MEAN,
)
from lpgnn_cli.reporting.text import is_screen
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.runsummary import EvalSummary, Selection

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
    """One row per unit: from zero, at the states of the checkpoint, and as recorded with them."""
    recorded = any(score.recorded for score in scores)
    persistent = any(score.persistent for score in scores)
    table = Table(box=box.SIMPLE if is_screen(console) else None, pad_edge=False)
    table.add_column("unit")
    titles = ["accuracy", "violation", "converged"]
    titles += ["persistent"] if persistent else []
    titles += ["recorded"] if recorded else []
    for title in titles:
        table.add_column(title, justify="right")
    for name, score in zip(names, scores, strict=True):
        row = [name, per_cent(score.metrics[TEST_ACCURACY])]
        row.append(compact(score.metrics.get(VIOLATION_MEAN.on(TEST), math.nan)))
        row.append(per_cent(score.inference.get(CONVERGED.name, math.nan), 0))
        row += [per_cent(score.persistent.get(TEST_ACCURACY, math.nan))] if persistent else []
        row += [per_cent(_recorded(score))] if recorded else []
        table.add_row(*row)
    console.print(table)
    over = f"over {count(summary.units, 'unit')}"
    console.print(
        f"accuracy     {_text(summary, summary.scored)} {over}, from zero", highlight=False
    )
    if persistent:
        text = _text(summary, summary.persistent)
        console.print(f"persistent   {text} at the states of the checkpoints", highlight=False)
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


def _text(summary: EvalSummary, selection: Selection) -> str:
    accuracy = selection.accuracy
    return metric_mean_std(TEST_ACCURACY, accuracy.mean, accuracy.std, summary.units)


def _recorded(score: Score) -> float:
    return score.recorded.get(TEST_ACCURACY, score.recorded.get(ACCURACY.on(TRAIN), math.nan))


def _differs(score: Score) -> bool:
    """Whether the states of the checkpoint give another accuracy than they did in training."""
    recorded = score.recorded.get(TEST_ACCURACY)
    again = (score.persistent or score.metrics)[TEST_ACCURACY]
    return recorded is not None and abs(recorded - again) > 1e-9
