"""The curves of several runs in one picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lpgnn_cli.metrics import EPOCH, LOSS, TEST, TRAIN, VIOLATION_MEAN, Metric, mean_of, std_of
from lpgnn_cli.reporting.contrast import Contrasted
from lpgnn_cli.reporting.look import new_figure, style
from lpgnn_cli.reporting.units import all_supervised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = (TEST, TRAIN)


def curves_png(runs: Sequence[Contrasted]) -> bytes | None:
    """As PNG; None where no run has curves yet."""
    with style():
        figure = draw_curves(runs)
        if figure is None:
            return None
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
    return buffer.getvalue()


def draw_curves(runs: Sequence[Contrasted]) -> Figure | None:
    """A panel for what runs are judged by, the loss and the violation; a colour for each run."""
    metrics = [*{run.metric.name: run.metric for run in runs}.values(), LOSS, VIOLATION_MEAN]
    panels_wanted = [m for m in metrics if any(_shown(run, m) for run in runs)]
    if not panels_wanted:
        return None
    figure = new_figure(5.0 * len(panels_wanted), 4.6, "")
    panels = figure.subplots(1, len(panels_wanted), squeeze=False)[0]
    for panel, metric in zip(panels, panels_wanted, strict=True):
        for number, run in enumerate(runs):
            _draw(panel, run, metric, f"C{number}")
        panel.set_title(f"{metric.title.capitalize()}: test solid, training dashed")
        panel.set(xlabel="epoch")
        panel.set_ylabel(f"{metric.title} (%)" if metric.in_per_cent else metric.title)
        if metric is VIOLATION_MEAN:
            panel.set_yscale("log")
    _legend(figure, runs)
    return figure


def _draw(panel: Axes, run: Contrasted, metric: Metric, colour: str) -> None:
    scale = 100 if metric.in_per_cent else 1
    for part in _shown(run, metric):
        mean = scale * np.array(run.curves[mean_of(metric.on(part))])
        std = scale * np.array(run.curves[std_of(metric.on(part))])
        if metric is VIOLATION_MEAN:
            mean = np.where(mean > 0, mean, np.nan)
        line = {"linestyle": "-"} if part == TEST else {"linestyle": "--", "linewidth": 1.0}
        marker = "o" if len(mean) == 1 else None
        epochs = run.curves[EPOCH]
        panel.plot(epochs, mean, color=colour, marker=marker, **line)
        if part == TEST and metric is not VIOLATION_MEAN:
            low, high = mean - std, mean + std
            if metric.in_per_cent:
                low, high = np.clip(low, 0, 100), np.clip(high, 0, 100)
            panel.fill_between(epochs, low, high, color=colour, alpha=0.13, linewidth=0)


def _shown(run: Contrasted, metric: Metric) -> list[str]:
    """The parts that a run has a curve of; where all nodes are supervised there is no test."""
    parts = [part for part in PARTS if mean_of(metric.on(part)) in run.curves]
    return [part for part in parts if part != TEST or not all_supervised(run.folder)]


def _legend(figure: Figure, runs: Sequence[Contrasted]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=f"C{number}") for number in range(len(runs))]
    titles = [run.title for run in runs]
    names = [
        f"{run.letter}: {run.title if titles.count(run.title) == 1 else run.record.name}"
        for run in runs
    ]
    legend = figure.legend(lines, names, loc="outside upper center", ncols=1)
    for text in legend.get_texts():
        text.set_parse_math(False)
