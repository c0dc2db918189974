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
    REACH,
    TEST,
    TRAIN,
    VIOLATION_MEAN,
    Metric,
)
from lpgnn_cli.reporting.text import is_screen
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.runsummary import EvalSummary, Selection

if TYPE_CHECKING:
    from lpgnn_cli.training.influence import Influence
    from lpgnn_cli.training.scoring import Score


HOPS_SHOWN = (5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000)


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
    far = any(score.influence for score in scores)
    titles = [metric.title, "violation", "converged"]
    titles += ["reach"] if far else []
    titles += ["persistent"] if persistent else []
    titles += ["recorded"] if recorded else []
    for title in titles:
        table.add_column(title, justify="right")
    for name, score in zip(names, scores, strict=True):
        row = [name, metric_text(metric.name, score.metrics[metric.on(TEST)])]
        row.append(compact(score.metrics.get(VIOLATION_MEAN.on(TEST), math.nan)))
        row.append(per_cent(score.inference.get(CONVERGED.name, math.nan), 0))
        row += [compact(score.inference.get(REACH.name, math.nan))] if far else []
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
    if far:
        console.print(_influence_table(console, [s.influence for s in scores if s.influence]))
    off = [n for n, s in zip(names, scores, strict=True) if _differs(s, metric)]
    if off:
        console.print(
            f"warning: {', '.join(off)} did not give the recorded {metric.title} again; was it "
            "trained on another device or version?",
            highlight=False,
        )


def _influence_table(console: Console, found: Sequence[Influence]) -> Table:
    """Rather many hops near, and ever fewer far away, over the units that go so far."""
    table = Table(box=box.SIMPLE if is_screen(console) else None, pad_edge=False)
    for title in ("hops", "influence", "share of the start"):
        table.add_column(title, justify="right")
    far = max(len(one.by_hops) for one in found) - 1
    start = max(_mean_at(found, hops) for hops in range(min(2, far + 1)))
    for hops in sorted({*range(4), *(h for h in HOPS_SHOWN if h < far), far}):
        if hops <= far:
            value = _mean_at(found, hops)
            table.add_row(str(hops), compact(value), per_cent(value / start, 2))
    return table


def _mean_at(found: Sequence[Influence], hops: int) -> float:
    values = [one.by_hops[hops] for one in found if hops < len(one.by_hops)]
    return sum(values) / len(values)


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
