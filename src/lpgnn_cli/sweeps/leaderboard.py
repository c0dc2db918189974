"""What came out of a sweep: every job, ranked; the effect of every axis; the best command line."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.formatting import compact, csv_text, duration, metric_mean_std, one_line
from lpgnn_cli.metrics import TRAIN, VIOLATION_MEAN, Metric, mean_of, std_of
from lpgnn_cli.runfolder import (
    FINISHED,
    HONEST,
    OPTIMISTIC,
    OPTIMISTIC_FROM_ZERO,
    PER_FOLD_MAXIMUM,
    PERSISTENT,
)
from lpgnn_cli.runsummary import BEST_EPOCH, SECONDS, RunSummary, Selection, is_optimistic
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.jobs import Job
from lpgnn_cli.sweeps.nested import choices_table, choose, figure_text

# The figures of a job for people, from zero unless they say otherwise or are optimistic; where all
# nodes are supervised there is no test part to choose on.
_TITLES = {
    HONEST: "honest",
    PERSISTENT: "persistent",
    OPTIMISTIC: "best epoch (optimistic)",
    PER_FOLD_MAXIMUM: "per-fold maximum (optimistic)",
}
_TRAIN_TITLES = {
    HONEST: "train, last",
    PERSISTENT: "persistent",
    OPTIMISTIC: "train, best",
    PER_FOLD_MAXIMUM: "train, best of each",
}
_INNER_TITLES = {HONEST: "inner validation"}


def values_of(judge: Metric) -> dict[str, str]:
    """The columns of leaderboard.csv: values of a job in the metric that runs are judged by."""
    name = judge.name

    def mean(prefix: str) -> str:
        return mean_of(f"{prefix}/{name}")

    return {
        f"honest_{name}": mean(HONEST),
        "honest_std": std_of(f"{HONEST}/{name}"),
        f"persistent_{name}": mean(PERSISTENT),
        f"best_epoch_{name}": mean(OPTIMISTIC),
        "best_epoch_std": std_of(f"{OPTIMISTIC}/{name}"),
        "best_epoch_from_zero": mean(OPTIMISTIC_FROM_ZERO),
        "per_fold_maximum": mean(PER_FOLD_MAXIMUM),
        "best_epoch": BEST_EPOCH,
        f"train_{name}": mean(TRAIN),
        "train_violation": VIOLATION_MEAN.on(TRAIN),
        "seconds": SECONDS,
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
    best_of = max if board.larger_is_better() else min
    for axis in axes:
        views = [view for view in board.candidates() if axis in view.job.values]
        values = dict.fromkeys(view.job.values[axis] for view in views)
        if len(values) == len(views):  # each job has its own: nothing to average over
            continue
        for value in values:
            reached = [
                own
                for view in board.ranked()
                if view.job.values.get(axis) == value and math.isfinite(own := board.value(view))
            ]
            mean, best = (fmean(reached), best_of(reached)) if reached else (math.nan, math.nan)
            found.append(Effect(axis, value, len(reached), mean, best))
    return found


def command_line(job: Job) -> str:
    """The `lpgnn train` that repeats a job."""
    without = ("sweep.", "protocol.stage=")
    own = [word for word in job.overrides if not word.lstrip("+~").startswith(without)]
    return shlex.join(["lpgnn", "train", *with_config_dir(job.config_dir), *own])


def with_config_dir(folder: str | None) -> list[str]:
    """The flag that names the user's own folder of options."""
    return [] if folder is None else ["--config-dir", folder]


def write_leaderboard(board: Board, axes: Sequence[str], folder: Path, title: str) -> None:
    """leaderboard.csv, with fractions, and leaderboard.md, for people."""
    write_atomically(folder / "leaderboard.csv", _csv(board, axes))
    write_atomically(folder / "leaderboard.md", _markdown(board, axes, title))


def _csv(board: Board, axes: Sequence[str]) -> str:
    values = values_of(board.judge())
    header = ["rank", "job", *axes, "status", *values, "reason", "folder", "command"]
    rows = []
    for rank, view in enumerate(ranked(board), 1):
        done = view.state == FINISHED
        stored = view.summary.to_dict() if done else {}
        rows.append(
            [
                rank if done else "",
                view.job.number,
                *(view.job.values.get(axis, "") for axis in axes),
                view.state,
                *(stored.get(name, "") for name in values.values()),
                one_line(view.reason),
                view.job.run.path.name,
                command_line(view.job),
            ]
        )
    return csv_text(header, rows)


def header_of(board: Board, axes: Sequence[str]) -> list[str]:
    """The column that jobs are sorted by is marked; figures are what they are called."""
    metric = board.metric_name()
    titles, names = _titles(board), _figures(board)
    columns = [f"{titles[p]} ▾" if name == metric else titles[p] for p, name in names.items()]
    other = [f"{metric} ▾"] if metric not in names.values() else []
    return ["rank", "job", *axes, *other, *columns, "violation", "time"]


def _figures(board: Board) -> dict[str, str]:
    """The stored names of the figures that are shown, by what they begin with."""
    return {prefix: mean_of(f"{prefix}/{board.judge().name}") for prefix in _titles(board)}


def effect_title(board: Board) -> str:
    """What the effects of the axes are on, and what kind of figure that is."""
    metric = board.metric_name()
    if board.outer_folds:
        return f"{metric} of the inner validation parts"
    return f"{metric} (optimistic: chosen on test parts)" if is_optimistic(metric) else metric


def _titles(board: Board) -> dict[str, str]:
    if board.outer_folds:
        return _INNER_TITLES
    return _TRAIN_TITLES if _all_supervised(board) else _TITLES


def _all_supervised(board: Board) -> bool:
    done = board.of_state(FINISHED)
    return bool(done) and all(v.summary.all_supervised for v in done)


def cells_of(board: Board, view: View, rank: int, axes: Sequence[str]) -> list[str]:
    summary = view.summary
    names = _figures(board)
    figures = {
        HONEST: summary.honest,
        PERSISTENT: summary.persistent,
        OPTIMISTIC: summary.optimistic,
        PER_FOLD_MAXIMUM: summary.per_fold_maximum,
    }
    return [
        str(rank),
        str(view.job.number),
        *(view.job.values.get(axis, "") for axis in axes),
        *([] if board.metric_name() in names.values() else [board.text(board.value(view))]),
        *(_figure(summary, figures[prefix]) for prefix in names),
        compact(summary.violation.get(TRAIN, math.nan)),
        duration(summary.seconds),
    ]


def _figure(summary: RunSummary, selection: Selection) -> str:
    figure = selection.figure
    name = selection.metric.name
    return metric_mean_std(name, figure.mean, figure.std, summary.units_finished)


def _markdown(board: Board, axes: Sequence[str], title: str) -> str:
    lines = [f"# {title}", "", *_outer_folds(board, axes)]
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
    rows = [
        [e.axis, e.value, str(e.jobs), board.text(e.mean), board.text(e.best)]
        for e in effects(board, axes)
    ]
    if rows and done:
        lines += ["", f"## Effect of each axis on {effect_title(board)}", ""]
        lines += _table(["axis", "value", "jobs", "mean", "best"], rows)
    best = board.best()
    if best is not None:
        lines += ["", "## Best", "", "```", command_line(best.job), "```"]
    return "\n".join(lines) + "\n"


def _outer_folds(board: Board, axes: Sequence[str]) -> list[str]:
    """The figure of the sweep under `protocol=nested`, and the choices behind it."""
    folds = choose(board) if board.outer_folds else []
    if not folds:
        return []
    judge = board.judge()
    header, rows = choices_table(folds, judge, axes)
    title = f"## Choice of each outer fold, and its {judge.title} on the test part from zero"
    figure = figure_text(folds, judge)
    said = [f"**Nested: {figure}.**", ""] if figure else []
    return [*said, title, "", *_table(header, rows), "", "## What they chose from", ""]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(header)} |", f"|{'|'.join(' --- ' for _ in header)}|"]
    return lines + [f"| {' | '.join(c.replace('|', '/') for c in row)} |" for row in rows]
