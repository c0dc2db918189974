"""The paper's grids in the report: how far the method to the letter spreads over its settings.

results/grids.jsonl keeps one sweep of `experiment=grid/paper_*` per line, as `GridSweep` has it.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpgnn_cli.config.effects import essential_words
from lpgnn_cli.formatting import csv_text, metric_mean_std, metric_text
from lpgnn_cli.paper.document import NOTHING, Section
from lpgnn_cli.paper.kept import KeptSweep, in_order, keep_newest, read_kept
from lpgnn_cli.reporting.grid import RUN, Grid
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED, RunFolder
from lpgnn_cli.settings import read_flat_config

KEPT = "grids.jsonl"
GRIDS = "grids"
PRESET, BEST_OF = "experiment=grid/", "sweep.best_of="
# What says which combinations of a grid are trained.
CHOICE = ("sweep.sample=", BEST_OF, "sweep.name=")
BOARD = "leaderboard.csv"
HONEST, PERSISTENT = "honest_", "persistent_"
INTRO = [
    "The method to the letter (recipe=paper) over the paper's grid of settings: all combinations, "
    "a sample that was drawn before anything was run, or the best of a sweep with fewer epochs and "
    "folds, which is a row of its own. Accuracies from zero, in the last epoch or the one that a "
    "validation part selects. The best combination is chosen on the test parts, as the paper's is, "
    "so it is optimistic; the median is what a setting of the grid gives that nobody has chosen.",
]


@dataclass(frozen=True)
class GridSweep(KeptSweep):
    """One figure per combination that was trained to its end, the best first."""

    figures: tuple[float, ...]
    failed: int
    # Of the best one: its spread over folds, its figure at states of training, and its command.
    std: float
    persistent: float | None
    best: str
    seconds: float
    # Whether they are the best of another sweep, and so tell nothing of the rest.
    preselected: bool = False

    @property
    def trained(self) -> int:
        return len(self.figures) + self.failed

    @property
    def question(self) -> tuple[str, ...]:
        """A larger sample takes the place of a smaller one, and nothing that of another choice, of
        other epochs or of other folds."""
        words = (word for word in shlex.split(self.command) if not word.startswith(CHOICE))
        return *super().question, str(self.preselected), *words


def grids_in_folders(root: Path) -> list[GridSweep]:
    """Those below the root of all runs that have ended, by dataset and name."""
    found = [_read(RunFolder(path.parent)) for path in sorted(root.glob(f"sweep/*/{BOARD}"))]
    return in_order(sweep for sweep in found if sweep is not None)


def read_grids(results: Path) -> list[GridSweep]:
    return read_kept(results / KEPT, GridSweep)


def collect_grids(sweeps: Sequence[GridSweep], results: Path) -> list[str]:
    return keep_newest(results / KEPT, GridSweep, sweeps)


def grids_section(sweeps: Sequence[GridSweep]) -> Section:
    header = ["dataset", "grid", "best (optimistic)", "persistent there", "median", "quartiles"]
    header += ["worst", "trained", "failed", RUN]
    rows = []
    for sweep in sweeps:
        low, middle, high = (_text(sweep, q) for q in np.quantile(sweep.figures, (0.25, 0.5, 0.75)))
        spread = [middle, f"{low} to {high}", _text(sweep, sweep.figures[-1])]
        if sweep.preselected:
            spread = [NOTHING] * 3
        best = metric_mean_std(sweep.metric, sweep.figures[0], sweep.std, 2 if sweep.std else 1)
        persistent = NOTHING if sweep.persistent is None else _text(sweep, sweep.persistent)
        trained = f"{sweep.trained} of {sweep.combinations}"
        if sweep.preselected:
            trained += ", chosen by another sweep"
        rows.append(
            [
                *(sweep.dataset, sweep.name, best, persistent, *spread),
                *(trained, str(sweep.failed), sweep.command),
            ]
        )
    notes = [f"The best on {sweep.dataset}: {sweep.best}" for sweep in sweeps]
    return Section(
        id=GRIDS,
        title="To the letter, over the paper's grids",
        intro=INTRO,
        overview=Grid(header, rows, labels=2),
        details=Grid([], []),
        comparisons=Grid([], []),
        notes=notes,
    )


def grids_csv(sweeps: Sequence[GridSweep]) -> str:
    """One row per sweep, with fractions."""
    header = ["dataset", "grid", "metric", "best", "best_std", "persistent_at_best", "median"]
    header += ["combinations", "trained", "failed", "figures", "best_command", "command"]
    rows = [
        [
            *(sweep.dataset, sweep.name, sweep.metric, sweep.figures[0], sweep.std),
            "" if sweep.persistent is None else sweep.persistent,
            "" if sweep.preselected else float(np.median(sweep.figures)),
            *(sweep.combinations, sweep.trained, sweep.failed),
            *(" ".join(f"{figure:g}" for figure in sweep.figures), sweep.best, sweep.command),
        ]
        for sweep in sweeps
    ]
    return csv_text(header, rows)


def _text(sweep: GridSweep, value: float) -> str:
    return metric_text(sweep.metric, float(value))


def _read(folder: RunFolder) -> GridSweep | None:
    """A sweep over a grid, or None where it is another one, has not ended or cannot be read."""
    try:
        record, summary = folder.read_record(), folder.read_summary()
        preset = next(word for word in record.argv if word.startswith(PRESET))
        with (folder.path / BOARD).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if any(row["status"] not in (FINISHED, FAILED, DIVERGED) for row in rows):
            return None
        done = [row for row in rows if row["status"] == FINISHED]
        metric = next(name for name in rows[0] if name.startswith(HONEST)).removeprefix(HONEST)
        persistent = done[0][PERSISTENT + metric]
        choice = [word for word in record.argv if word.startswith(CHOICE)]
        return GridSweep(
            name=preset.removeprefix(PRESET),
            dataset=read_flat_config(folder.config_path)["dataset.name"],
            metric=metric,
            combinations=int(summary.get("combinations", len(rows))),
            command=shlex.join(["lpgnn", *essential_words(record.argv), *choice]),
            started=record.started,
            version=record.version,
            git_commit=record.git_commit,
            versions=record.versions,
            figures=tuple(float(row[HONEST + metric]) for row in done),
            failed=len(rows) - len(done),
            std=float(done[0]["honest_std"]),
            persistent=float(persistent) if persistent else None,
            best=shlex.join(essential_words(shlex.split(done[0]["command"]))),
            seconds=float(summary["seconds"]),
            preselected=any(word.startswith(BEST_OF) for word in choice),
        )
    except (OSError, ValueError, KeyError, IndexError, StopIteration):
        return None
