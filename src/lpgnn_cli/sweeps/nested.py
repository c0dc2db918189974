"""`protocol=nested`: which combination each outer fold chooses, and what it gives there.

Jobs that select are ordinary ones, whose units are the inner parts of all outer folds; none of them
has the outer test parts. Jobs that assess train the choice of one outer fold again, and are scored
on its test part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.formatting import csv_text, metric_mean_std, metric_text
from lpgnn_cli.metrics import Metric, mean_of, std_of
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED, RunFolder
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.jobs import Job

NESTED = "nested"
SELECT, ASSESS = "protocol.stage=select", "protocol.stage=assess"
FILE = "nested.csv"


@dataclass(frozen=True)
class OuterFold:
    """The choice of one outer fold; no test accuracies until it has been trained again."""

    fold: int
    chosen: View
    # On the inner validation parts, from zero, in the metric that runs are judged by.
    inner: float
    # One per initialisation, on the outer test part, from zero and at the states of training.
    test: Sequence[float]
    persistent: Sequence[float]

    @property
    def figure(self) -> float:
        return fmean(self.test) if self.test else math.nan


def choose(board: Board) -> list[OuterFold]:
    """The best combination of each outer fold, once all have been tried; the first of equals."""
    candidates, judge = board.candidates(), board.judge()
    if any(view.state not in (FINISHED, FAILED, DIVERGED) for view in candidates):
        return []
    figures = {
        view.job.key: _by_fold(view.job.run, judge) for view in candidates if view.state == FINISHED
    }
    folds = sorted({fold for by_fold in figures.values() for fold in by_fold})
    assessed = {view.job.fold: view for view in board.assessments() if view.state == FINISHED}
    outcome = []
    for fold in folds:
        able = [view for view in candidates if fold in figures.get(view.job.key, {})]
        best = min(able, key=partial(_rank, figures, fold, judge))
        test, persistent = _scores(assessed[fold].job.run, judge) if fold in assessed else ([], [])
        outcome.append(OuterFold(fold, best, figures[best.job.key][fold], test, persistent))
    return outcome


def _rank(
    figures: Mapping[str, Mapping[int, float]], fold: int, judge: Metric, view: View
) -> tuple[float, int]:
    value = figures[view.job.key][fold]
    return (-value if judge.larger_is_better else value, view.job.number)


def assessing_overrides(job: Job, fold: int) -> list[str]:
    """What trains a choice again, on all training graphs of an outer fold."""
    words = [word for word in job.overrides if word != SELECT]
    return [*words, ASSESS, f"protocol.fold={fold}"]


def summary_of(folds: Sequence[OuterFold], judge: Metric) -> dict[str, Any]:
    """What is stored of all outer folds: mean and std over them of the means over their seeds."""
    if not folds or any(math.isnan(outer.figure) for outer in folds):
        return {}
    name, figures = f"{NESTED}/{judge.name}", [outer.figure for outer in folds]
    stored = {mean_of(name): fmean(figures), std_of(name): pstdev(figures)}
    if all(outer.persistent for outer in folds):
        kept = [fmean(outer.persistent) for outer in folds]
        stored[mean_of(f"{NESTED}/persistent_{judge.name}")] = fmean(kept)
    return {**stored, f"{NESTED}/folds": len(folds)}


def choices_table(
    folds: Sequence[OuterFold], judge: Metric, axes: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Header and rows for people: what every outer fold has chosen, and what it gave there."""
    rows = [
        [
            str(outer.fold),
            str(outer.chosen.job.number),
            *(outer.chosen.job.values.get(axis, "") for axis in axes),
            metric_text(judge.name, outer.inner),
            metric_text(judge.name, outer.figure),
        ]
        for outer in folds
    ]
    return ["fold", "job", *axes, "inner validation", "test"], rows


def figure_text(folds: Sequence[OuterFold], judge: Metric) -> str:
    """The figure of the sweep; empty until all outer folds have theirs."""
    stored, name = summary_of(folds, judge), f"{NESTED}/{judge.name}"
    if not stored:
        return ""
    text = metric_mean_std(name, stored[mean_of(name)], stored[std_of(name)], len(folds))
    return f"{text} over {len(folds)} outer folds"


def write_nested(
    folds: Sequence[OuterFold], judge: Metric, axes: Sequence[str], folder: Path
) -> None:
    """nested.csv: one row per outer fold, with fractions."""
    rows = [
        [
            outer.fold,
            outer.chosen.job.number,
            *(outer.chosen.job.values.get(axis, "") for axis in axes),
            outer.inner,
            "" if math.isnan(outer.figure) else outer.figure,
            " ".join(f"{value:g}" for value in outer.test),
            fmean(outer.persistent) if outer.persistent else "",
        ]
        for outer in folds
    ]
    name = judge.name
    figures = [f"inner_validation_{name}", f"test_{name}", "by_seed", f"persistent_{name}"]
    write_atomically(folder / FILE, csv_text(["fold", "job", *axes, *figures], rows))


def _by_fold(run: RunFolder, judge: Metric) -> dict[int, float]:
    """The figure of each outer fold, where all its units have finished."""
    found: dict[int, list[float]] = {}
    for unit in run.read_record().units:
        result = run.read_result(unit.name)
        value = result.from_zero.get(judge.name, math.nan) if result else math.nan
        found.setdefault(unit.fold, []).append(value)
    means = {fold: fmean(values) for fold, values in found.items()}
    return {fold: mean for fold, mean in means.items() if math.isfinite(mean)}


def _scores(run: RunFolder, judge: Metric) -> tuple[list[float], list[float]]:
    results = [run.read_result(unit.name) for unit in run.read_record().units]
    done = [result for result in results if result and result.state == FINISHED]
    name = judge.name
    return (
        [result.from_zero[name] for result in done],
        [result.persistent[name] for result in done if name in result.persistent],
    )
