"""Figures of a sweep: a heat map for two axes, parallel coordinates for more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from lpgnn_cli.metrics import in_per_cent
from lpgnn_cli.reporting.look import new_figure, save_figure, style
from lpgnn_cli.runsummary import is_optimistic
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.leaderboard import effects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "viridis"
# Values of an axis that a heat map has room for, and that are written at a parallel axis.
MOST_CELLS, MOST_LABELS = 12, 8


def draw_sweep(board: Board, axes: Sequence[str], folder: Path, title: str) -> list[Path]:
    """Draws what the number of axes with several values asks for."""
    finite = [v for v in board.ranked() if math.isfinite(board.value(v))]
    varied = [axis for axis in axes if len(values_of(finite, axis)) > 1]
    if len(finite) < 2 or not varied:
        return []
    folder.mkdir(exist_ok=True)
    with style():
        figures: dict[str, Figure] = {}
        if averaged := list(dict.fromkeys(effect.axis for effect in effects(board, varied))):
            figures["effects"] = draw_effects(board, averaged, title)
        widest = max(len(values_of(finite, axis)) for axis in varied)
        if len(varied) == 2 and widest <= MOST_CELLS:
            figures["heatmap"] = draw_heatmap(board, finite, varied[0], varied[1], title)
        elif len(varied) >= 2:
            figures["parallel"] = draw_parallel(board, finite, varied, title)
        paths = []
        for name, figure in figures.items():
            paths.append(folder / f"{name}.png")
            save_figure(figure, paths[-1])
    return paths


def values_of(views: Sequence[View], axis: str) -> list[str]:
    """Numbers by size, words in the order of the sweep."""
    values = list(dict.fromkeys(v.job.values[axis] for v in views if axis in v.job.values))
    try:
        return sorted(values, key=float)
    except ValueError:
        return values


def _scale(board: Board) -> tuple[float, str]:
    name = board.metric_name()
    note = " (optimistic)" if is_optimistic(name) else ""
    return (100, f"{name}{note} (%)") if in_per_cent(name) else (1, f"{name}{note}")


def draw_heatmap(board: Board, views: Sequence[View], across: str, down: str, title: str) -> Figure:
    """The mean over all jobs that have both values."""
    columns, rows = values_of(views, across), values_of(views, down)
    factor, label = _scale(board)
    grid = np.full((len(rows), len(columns)), np.nan)
    for (i, row), (j, column) in ((r, c) for r in enumerate(rows) for c in enumerate(columns)):
        here = [v for v in views if v.job.values[across] == column and v.job.values[down] == row]
        if here:
            grid[i, j] = factor * fmean(board.value(v) for v in here)
    figure = new_figure(2.6 + 0.9 * len(columns), 1.8 + 0.6 * len(rows), title)
    panel = figure.subplots()
    image = panel.imshow(grid, cmap=COLOURS, aspect="auto")
    figure.colorbar(image, ax=panel, label=label)
    middle = (np.nanmin(grid) + np.nanmax(grid)) / 2
    for (i, j), value in np.ndenumerate(grid):
        if not math.isnan(value):
            colour = "black" if value > middle else "white"
            panel.text(j, i, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=9)
    panel.set_xticks(range(len(columns)), columns)
    panel.set_yticks(range(len(rows)), rows)
    panel.set(xlabel=across, ylabel=down)
    panel.grid(False)
    return figure


def draw_parallel(board: Board, views: Sequence[View], axes: Sequence[str], title: str) -> Figure:
    """One line per job over all axes, coloured by its value; the best are drawn last."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    factor, label = _scale(board)
    values = {v.job.key: factor * board.value(v) for v in views}
    low, high = min(values.values()), max(values.values())
    norm, colours = Normalize(low, high), matplotlib.colormaps[COLOURS]
    figure = new_figure(1.8 + 1.7 * (len(axes) + 1), 4.6, title)
    panel = figure.subplots()
    places = {axis: {value: i for i, value in enumerate(values_of(views, axis))} for axis in axes}
    spread = np.random.default_rng(0)
    worst_first = sorted(
        views, key=lambda v: values[v.job.key], reverse=not board.larger_is_better()
    )
    for view in worst_first:
        heights = [
            places[a][view.job.values[a]] / max(1, len(places[a]) - 1) + spread.uniform(-0.03, 0.03)
            for a in axes
        ]
        own = values[view.job.key]
        heights.append((own - low) / (high - low) if high > low else 0.5)
        panel.plot(heights, color=colours(norm(own)), alpha=0.75, linewidth=1.3)
    for position, axis in enumerate(axes):
        _label(panel, position, list(places[axis]))
    panel.set_xticks(range(len(axes) + 1), [*axes, label])
    panel.set_yticks([])
    panel.set_ylim(-0.08, 1.08)
    figure.colorbar(ScalarMappable(norm, colours), ax=panel, label=label)
    return figure


def _label(panel: Axes, position: int, values: Sequence[str]) -> None:
    step = -(-len(values) // MOST_LABELS)
    for i, value in list(enumerate(values))[::step]:
        height = i / max(1, len(values) - 1)
        box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1}
        panel.text(position, height, _short(value), fontsize=8, ha="center", va="center", bbox=box)


def _short(value: str) -> str:
    try:
        return value if len(value) <= 8 else f"{float(value):.3g}"
    except ValueError:
        return value


def draw_effects(board: Board, axes: Sequence[str], title: str) -> Figure:
    """Mean and best over all jobs with the same value, axis by axis."""
    factor, label = _scale(board)
    figure = new_figure(max(5.0, 2.4 * len(axes)), 3.6, title)
    panels = figure.subplots(1, len(axes), squeeze=False, sharey=True)[0]
    found = effects(board, axes)
    for panel, axis in zip(panels, axes, strict=True):
        values = values_of(board.ranked(), axis)
        by_value = {e.value: e for e in found if e.axis == axis}
        means = [factor * by_value[value].mean for value in values]
        best = [factor * by_value[value].best for value in values]
        panel.plot(range(len(values)), means, "o-", color="C0", label="mean")
        panel.plot(range(len(values)), best, "^--", color="C1", label="best")
        panel.set_xticks(range(len(values)), values, rotation=30, ha="right")
        panel.set_xlim(-0.4, len(values) - 0.6)
        panel.set_xlabel(axis)
    panels[0].set_ylabel(label)
    panels[0].legend()
    return figure
