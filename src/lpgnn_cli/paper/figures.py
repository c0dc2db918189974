"""The figures of a report: karate embedding, accuracy by depth, violation over the epochs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lpgnn_cli.metrics import TEST, VIOLATION_MEAN, mean_of
from lpgnn_cli.paper.cells import Cell
from lpgnn_cli.paper.document import Findings, Picture
from lpgnn_cli.paper.runs import PresetRun
from lpgnn_cli.reporting.look import new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EMBEDDING = {
    "embedding.png": "States of the karate club at the beginning, half way and at the end",
    "embedding.gif": "The same over the epochs",
}
DEPTH_TABLES = ("depth_vs_diffusion", "lp_in_other_gnns")
# What a violation is followed of: rows of the paper with free states.
VIOLATION_ROWS = {"graph_classification": ("single", "multi"), "artificial": ("squared", "abs")}


def draw_pictures(findings: Sequence[Findings], folder: Path) -> dict[str, list[Picture]]:
    """Draws what there are measurements for into `folder`; pictures by table."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, list[Picture]] = {}
    for one in findings:
        if one.table.id == "karate":
            pictures["karate"] = find_embedding(one)
        figures: dict[str, Figure | None] = {}
        with style():
            if one.table.id in DEPTH_TABLES:
                caption = "Accuracy by number of state layers"
                figures[caption] = draw_depth(one)
            if one.table.id in VIOLATION_ROWS:
                caption = "Mean violation on the test part over the epochs"
                figures[caption] = draw_violation(one)
            for caption, figure in figures.items():
                if figure is not None:
                    path = folder / f"{one.table.id}.png"
                    figure.savefig(path)
                    pictures[one.table.id] = [Picture(path, caption)]
    return pictures


def find_embedding(findings: Findings) -> list[Picture]:
    """The pictures that the karate run itself has drawn."""
    runs = [cell.measured.run for cell in findings.cells if cell.row.id == "lp" and cell.measured]
    return [
        Picture(run.folder.figures / name, caption)
        for run in runs
        for name, caption in EMBEDDING.items()
        if (run.folder.figures / name).is_file()
    ]


def draw_depth(findings: Findings) -> Figure | None:
    """The paper's accuracies as open, ours as filled markers, by K."""
    cells = findings.cells
    if not any(cell.headline for cell in cells):
        return None
    figure = new_figure(6.4, 4.4, findings.table.title)
    panel = figure.subplots()
    rows = findings.table.rows
    for number, row in enumerate(rows):
        # Side by side: error bars on top of each other cannot be told apart.
        aside = 0.06 * (number - (len(rows) - 1) / 2)
        own = [cell for cell in cells if cell.row.id == row.id]
        colour = f"C{number}"
        paper = [(_depth(c) + aside, c.reference.paper.mean) for c in own if c.reference.paper]
        if paper:
            panel.plot(*zip(*paper, strict=True), color=colour, marker="o", mfc="white", ls="--")
        ours = [
            (_depth(c) + aside, c.headline.mean, c.headline.std or 0.0) for c in own if c.headline
        ]
        if ours:
            depths, means, stds = zip(*ours, strict=True)
            panel.errorbar(depths, means, stds, color=colour, marker="o", capsize=3)
        if paper or ours:
            panel.plot([], [], color=colour, marker="o", label=row.model)
    panel.plot([], [], color="0.4", marker="o", mfc="white", ls="--", label="the paper's")
    panel.set(xlabel="state layers K", ylabel="accuracy (%)", xticks=[1, 2, 3, 5], xlim=(0.7, 5.3))
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _depth(cell: Cell) -> int:
    return int(cell.column.id.removeprefix("k"))


def draw_violation(findings: Findings) -> Figure | None:
    """How far the states of the test part are from satisfying the constraints, by epoch."""
    wanted = VIOLATION_ROWS[findings.table.id]
    panels = {}
    for row in wanted:
        cells = [c for c in findings.cells if c.row.id == row]
        curves = {c.column.title: _violation(c.measured.run) for c in cells if c.measured}
        curves = {title: curve for title, curve in curves.items() if len(curve[0])}
        if curves:
            panels[findings.table.row(row).model] = curves
    if not panels:
        return None
    figure = new_figure(5.2 * len(panels), 4.2, "Violation of the constraints on the test part")
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    colours = {column.title: f"C{i}" for i, column in enumerate(findings.table.columns)}
    for panel, (model, curves) in zip(axes, panels.items(), strict=True):
        for title, (epochs, values) in curves.items():
            panel.semilogy(epochs, values, color=colours[title], label=title)
        panel.set(xlabel="epoch", title=model)
        panel.legend()
    axes[0].set_ylabel("mean |x - f(x)|")
    return figure


def _violation(run: PresetRun) -> tuple[list[float], list[float]]:
    path = run.folder.path / "curves.csv"
    name = mean_of(VIOLATION_MEAN.on(TEST))
    if not path.is_file():
        return [], []
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(float(r["epoch"]), float(r[name])) for r in csv.DictReader(file) if r.get(name)]
    points = [(e, v) for e, v in rows if np.isfinite(v) and v > 0]
    return [e for e, _ in points], [v for _, v in points]
