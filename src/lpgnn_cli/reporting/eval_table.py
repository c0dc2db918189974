"""The table that `lpgnn eval` ends with."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from lpgnn_cli.reporting.text import compact, is_screen, per_cent
from lpgnn_cli.runfolder import RunFolder

if TYPE_CHECKING:
    from lpgnn_cli.training.scoring import Score


def evaluation_table(
    console: Console, folder: RunFolder, names: Sequence[str], scores: Sequence[Score]
) -> None:
    """One row a unit: what was recorded, what was found again, and from zero states."""
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
        row.append(per_cent(score.metrics["test/accuracy"]))
        row.append(compact(score.metrics.get("test/violation_mean", float("nan"))))
        if known:
            row.append(per_cent(score.inference.get("from_zero_accuracy", float("nan"))))
        row.append(per_cent(score.inference.get("converged", float("nan")), 0))
        table.add_row(*row)
    console.print(table)
    accuracies = [score.metrics["test/accuracy"] for score in scores]
    console.print(
        f"accuracy     {per_cent(statistics.fmean(accuracies))} "
        f"± {per_cent(statistics.pstdev(accuracies))} over {len(scores)} units",
        highlight=False,
    )
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
    return score.recorded.get("test/accuracy", score.recorded.get("train/accuracy", float("nan")))


def _differs(score: Score) -> bool:
    return (
        "test/accuracy" in score.recorded
        and abs(score.recorded["test/accuracy"] - score.metrics["test/accuracy"]) > 1e-9
    )
