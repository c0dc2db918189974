"""What came out of a sweep: every job, ranked; the effect of every axis; the best command line."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.reporting.summary import ALL_SUPERVISED
from lpgnn_cli.reporting.text import compact, csv_text, duration, one_line, per_cent
from lpgnn_cli.runfolder import FINISHED
from lpgnn_cli.sweep.board import Board, View
from lpgnn_cli.sweep.jobs import Job
from lpgnn_cli.sweep.objective import HONEST, OPTIMISTIC

# Figures of a job, in the order of the columns of leaderboard.csv.
FIGURES = {
    "honest_accuracy": HONEST,
    "honest_std": "honest/accuracy_std",
    "best_epoch_accuracy": OPTIMISTIC,
    "best_epoch_std": "cv/accuracy_std",
    "best_epoch": "cv/best_epoch",
    "train_accuracy": "train/accuracy_mean",
    "train_violation": "train/violation_mean",
    "seconds": "seconds",
}


@dataclass(frozen=True)
class Effect:
    """The jobs that have one value on one axis, whatever they have on the others."""

    axis: str
    value: str
    jobs: int
    mean: float
    best: float


def ranked(board: Board) -> list[View]:
    """Finished jobs, the best first, then the others in their order."""
    done = board.ranked()
    return done + [view for view in board.views.values() if view.state != FINISHED]


def effects(board: Board, axes: Sequence[str]) -> list[Effect]:
    """The marginal effect of each axis: means over all finished jobs with the same value."""
    found = []
    for axis in axes:
        views = [view for view in board.views.values() if axis in view.job.values]
        values = dict.fromkeys(view.job.values[axis] for view in views)
        if len(values) == len(views):  # each job has its own: nothing to average over
            continue
        for value in values:
            figures = [
                figure
                for view in board.of_state(FINISHED)
                if view.job.values.get(axis) == value
                and math.isfinite(figure := board.figure(view))
            ]
            mean, best = (fmean(figures), max(figures)) if figures else (math.nan, math.nan)
            found.append(Effect(axis, value, len(figures), mean, best))
    return found


def command_line(job: Job) -> str:
    """The `lpgnn train` that repeats a job."""
    own = [word for word in job.overrides if not word.lstrip("+~").startswith("sweep.")]
    return shlex.join(["lpgnn", "train", *own])


def write_leaderboard(board: Board, axes: Sequence[str], folder: Path, title: str) -> None:
    """leaderboard.csv, with fractions, and leaderboard.md, for people."""
    write_atomically(folder / "leaderboard.csv", _csv(board, axes))
    write_atomically(folder / "leaderboard.md", _markdown(board, axes, title))


def _csv(board: Board, axes: Sequence[str]) -> str:
    header = ["rank", "job", *axes, "state", *FIGURES, "reason", "folder", "command"]
    rows = []
    for rank, view in enumerate(ranked(board), 1):
        done = view.state == FINISHED
        rows.append(
            [
                rank if done else "",
                view.job.number,
                *(view.job.values.get(axis, "") for axis in axes),
                view.state,
                *(_figure(view, name) if done else "" for name in FIGURES.values()),
                one_line(view.reason),
                view.job.run.path.name,
                command_line(view.job),
            ]
        )
    return csv_text(header, rows)


def _figure(view: View, name: str) -> Any:
    return view.summary.get(name, "")


def header_of(board: Board, axes: Sequence[str]) -> list[str]:
    """The column that jobs are sorted by is marked; accuracies are what they are called."""
    metric = board.metric_name()
    optimistic = "train, best" if _all_supervised(board) else "best epoch (optimistic)"
    names = {HONEST: "train, last" if _all_supervised(board) else "honest", OPTIMISTIC: optimistic}
    columns = [f"{names[m]} ▾" if m == metric else names[m] for m in (HONEST, OPTIMISTIC)]
    other = [f"{metric} ▾"] if metric not in names else []
    return ["rank", "job", *axes, *other, *columns, "violation", "time"]


def _all_supervised(board: Board) -> bool:
    done = board.of_state(FINISHED)
    return bool(done) and all(v.summary.get("honest/rule") == ALL_SUPERVISED for v in done)


def cells_of(board: Board, view: View, rank: int, axes: Sequence[str]) -> list[str]:
    summary, metric = view.summary, board.metric_name()
    return [
        str(rank),
        str(view.job.number),
        *(view.job.values.get(axis, "") for axis in axes),
        *([compact(board.figure(view))] if metric not in (HONEST, OPTIMISTIC) else []),
        with_spread(summary, "honest"),
        with_spread(summary, "cv"),
        compact(summary.get("train/violation_mean", math.nan)),
        duration(summary.get("seconds", math.nan)),
    ]


def with_spread(summary: Any, kind: str) -> str:
    mean = per_cent(summary.get(f"{kind}/accuracy_mean", math.nan))
    if summary.get("units", 1) < 2 or mean == "-":
        return mean
    spread = 100 * summary.get(f"{kind}/accuracy_std", math.nan)
    return f"{mean.removesuffix(' %')} ± {spread:.1f} %"


def _markdown(board: Board, axes: Sequence[str], title: str) -> str:
    lines = [f"# {title}", ""]
    done = board.ranked()
    lines += _table(
        header_of(board, axes),
        [cells_of(board, view, rank, axes) for rank, view in enumerate(done, 1)],
    )
    others = [view for view in board.views.values() if view.state != FINISHED]
    if others:
        lines += ["", "## Not finished", ""]
        rows = [[str(v.job.number), v.job.title, v.state, one_line(v.reason)] for v in others]
        lines += _table(["job", "settings", "state", "reason"], rows)
    if axes and done:
        lines += ["", f"## Effect of each axis on {board.metric_name()}", ""]
        rows = [
            [e.axis, e.value, str(e.jobs), as_figure(board, e.mean), as_figure(board, e.best)]
            for e in effects(board, axes)
        ]
        lines += _table(["axis", "value", "jobs", "mean", "best"], rows)
    best = board.best()
    if best is not None:
        lines += ["", "## Best", "", "```", command_line(best.job), "```"]
    return "\n".join(lines) + "\n"


def as_figure(board: Board, value: float) -> str:
    """Per cent for accuracies, a plain number for everything else."""
    return per_cent(value) if "accuracy" in board.metric_name() else compact(value)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join(' --- ' for _ in header)}|"]
    return lines + [f"| {' | '.join(c.replace('|', '/') for c in row)} |" for row in rows]
