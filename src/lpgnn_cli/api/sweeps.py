"""`lpgnn.sweep`: what `lpgnn sweep` does, called from Python, and its leaderboard."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser

from lpgnn_cli.api.graphs import with_stored_graphs
from lpgnn_cli.api.html import table
from lpgnn_cli.api.runs import Run
from lpgnn_cli.api.script import importable_by_workers
from lpgnn_cli.api.surroundings import undisturbed
from lpgnn_cli.api.training import Interrupted
from lpgnn_cli.api.words import flatten, sweep_words
from lpgnn_cli.commands.sweep import run_to_the_end
from lpgnn_cli.config.compose import check_overrides, make_loader
from lpgnn_cli.credentials import keep_in_words
from lpgnn_cli.formatting import count, per_cent
from lpgnn_cli.runfolder import FINISHED, RunFolder
from lpgnn_cli.runsummary import HONEST_ACCURACY
from lpgnn_cli.screen import plain_console
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.leaderboard import ranked
from lpgnn_cli.sweeps.nested import OuterFold, choose
from lpgnn_cli.sweeps.outcome import read_board
from lpgnn_cli.sweeps.session import Session


@dataclass(frozen=True)
class Row:
    """One job: its values on the axes, and what came of it.

    `accuracy` is the honest one, as a fraction, or whatever else the runs are judged by; `value` is
    what the sweep is sorted by.
    """

    settings: dict[str, Any]
    state: str
    accuracy: float
    value: float
    folder: Path
    reason: str

    @property
    def run(self) -> Run:
        return Run(self.folder)


@dataclass(frozen=True)
class Choice:
    """What one outer fold of `protocol="nested"` has chosen by `inner`, the accuracy on its
    validation parts, and the accuracy of that on its test part, both as fractions."""

    fold: int
    settings: dict[str, Any]
    inner: float
    accuracy: float


class Sweep:
    """The leaderboard of a sweep, the best job first, those that did not finish last.

    `choices` are those of the outer folds under `protocol="nested"`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = RunFolder.open(Path(folder).absolute()).path
        board = read_board(self.folder)
        self.metric = board.metric_name()
        self.rows = [_row(board, view) for view in ranked(board)]
        self.choices = [_choice(outer) for outer in choose(board)] if board.outer_folds else []

    @property
    def accuracy(self) -> float:
        """Under `protocol="nested"`, the mean over the outer folds; else not a number."""
        return fmean(c.accuracy for c in self.choices) if self.choices else math.nan

    @property
    def best(self) -> Row | None:
        """The first row, if any job finished."""
        return next((row for row in self.rows if math.isfinite(row.value)), None)

    def table(self) -> list[dict[str, Any]]:
        """One flat dictionary per job, for `pandas.DataFrame`."""
        return [
            {**row.settings, "accuracy": row.accuracy, "status": row.state, "folder": row.folder}
            for row in self.rows
        ]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        done = sum(row.state == FINISHED for row in self.rows)
        best = "" if self.best is None else f", best {_title(self.best)}"
        return f"<Sweep {self.folder.name}: {done} of {count(len(self), 'job')} finished{best}>"

    def _repr_html_(self) -> str:
        axes = list(dict.fromkeys(axis for row in self.rows for axis in row.settings))
        by_honest = self.metric == HONEST_ACCURACY
        header = [*axes, "status", "accuracy", *([] if by_honest else [self.metric])]
        rows = [
            [
                *(str(row.settings.get(axis, "")) for axis in axes),
                row.state,
                per_cent(row.accuracy),
                *([] if by_honest else [f"{row.value:.4g}"]),
            ]
            for row in self.rows
        ]
        return table(repr(self).strip("<>"), header, rows)


def sweep(*words: str, **settings: Any) -> Sweep:
    """Train every combination of the settings that have several values, and rank them.

    A list is an axis: `seed=[0, 1, 2]`. For a setting that is itself a list, a list of lists is:
    `state=[[16], [16, 2]]`, while `state=[16, 2]` is one value. Everything else is as in `train`
    and in `lpgnn sweep`; a sweep that is called again takes what is finished and goes on.
    """
    with undisturbed(), importable_by_workers():
        given = keep_in_words([*words, *sweep_words(with_stored_graphs(words, flatten(settings)))])
        loader = make_loader()
        check_overrides(loader, "sweep", given, multirun=True)
        with Session.open(loader, "sweep", given, plain_console()) as session:
            try:
                run_to_the_end(session)
            except KeyboardInterrupt:
                sentence = "interrupted; the same lpgnn.sweep(...) goes on."
                raise Interrupted(sentence, session.folder) from None
    return Sweep(session.folder)


def _row(board: Board, view: View) -> Row:
    return Row(
        settings=_values(view.job.values),
        state=view.state,
        accuracy=view.summary.honest.figure.mean if view.state == FINISHED else math.nan,
        value=board.value(view),
        folder=view.job.run.path,
        reason=view.reason,
    )


def _choice(outer: OuterFold) -> Choice:
    return Choice(outer.fold, _values(outer.chosen.job.values), outer.inner, outer.figure)


def _values(words: dict[str, str]) -> dict[str, Any]:
    """A job's values on the axes, as Python has them."""
    parsed = OverridesParser.create().parse_overrides([f"{k}={v}" for k, v in words.items()])
    return dict(zip(words, (override.value() for override in parsed), strict=True))


def _title(row: Row) -> str:
    values = ", ".join(f"{axis}={value}" for axis, value in row.settings.items())
    return f"{per_cent(row.accuracy)} ({values})"
