"""The table that `lpgnn eval` ends with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from lpgnn_cli.formatting import compact, count, metric_mean_std, metric_text, per_cent
from lpgnn_cli.metrics import (
    CONVERGED,
    TEST,
    TRAIN,
    VIOLATION_MEAN,
    Metric,
)
from lpgnn_cli.reporting.text import is_screen
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.runsummary import EvalSummary, Selection

if TYPE_CHECKING:
    from lpgnn_cli.training.scoring import Score


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
    metric = summary.scored.metric
    titles = [metric.title, "violation", "converged"]
    titles += ["persistent"] if persistent else []
    titles += ["recorded"] if recorded else []
    for title in titles:
        table.add_column(title, justify="right")
    for name, score in zip(names, scores, strict=True):
        row = [name, metric_text(metric.name, score.metrics[metric.on(TEST)])]
        row.append(compact(score.metrics.get(VIOLATION_MEAN.on(TEST), math.nan)))
        row.append(per_cent(score.inference.get(CONVERGED.name, math.nan), 0))
        there = score.persistent.get(metric.on(TEST), math.nan)
        row += [metric_text(metric.name, there)] if persistent else []
        row += [metric_text(metric.name, _recorded(score, metric))] if recorded else []
        table.add_row(*row)
    console.print(table)
    over = f"over {count(summary.units, 'unit')}"
    width = max(len(metric.title), len("predictions")) + 2
    figure = f"{metric.title:<{width}}{_text(summary, summary.scored)} {over}, from zero"
    console.print(figure, highlight=False)
    if persistent:
        text = _text(summary, summary.persistent)
        text = f"{'persistent':<{width}}{text} at the states of the checkpoints"
        console.print(text, highlight=False)
    files = f"{folder.path}/units/*/predictions.csv"
    console.print(f"{'predictions':<{width}}{files}", highlight=False, soft_wrap=True)
    off = [n for n, s in zip(names, scores, strict=True) if _differs(s, metric)]
    if off:
        console.print(
            f"warning: {', '.join(off)} did not give the recorded {metric.title} again; was it "
            "trained on another device or version?",
            highlight=False,
        )


def _text(summary: EvalSummary, selection: Selection) -> str:
    figure = selection.figure
    return metric_mean_std(selection.metric.name, figure.mean, figure.std, summary.units)


def _recorded(score: Score, metric: Metric) -> float:
    return score.recorded.get(metric.on(TEST), score.recorded.get(metric.on(TRAIN), math.nan))


def _differs(score: Score, metric: Metric) -> bool:
    """Whether the states of the checkpoint give another value than they did in training."""
    recorded = score.recorded.get(metric.on(TEST))
    again = (score.persistent or score.metrics)[metric.on(TEST)]
    return recorded is not None and abs(recorded - again) > 1e-9
