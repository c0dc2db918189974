"""The figures of a report: karate embedding, accuracy by depth, violation over the epochs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpgnn_cli.paper.cells import Cell
from lpgnn_cli.paper.document import Figure, Findings
from lpgnn_cli.reporting.look import new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

EMBEDDING_CAPTIONS = {
    ".png": "States of the karate club at the beginning, half way and at the end",
    ".gif": "The same over the epochs",
}
DEPTH_TABLES = ("depth_vs_diffusion", "lp_in_other_gnns")
# What a violation is followed of: rows of the paper with free states.
VIOLATION_ROWS = {"graph_classification": ("single", "multi"), "artificial": ("squared", "abs")}


def draw_figures(findings: Sequence[Findings], folder: Path) -> dict[str, list[Figure]]:
    """Draws what there are measurements for into `folder`; figures by table."""
    folder.mkdir(parents=True, exist_ok=True)
    figures: dict[str, list[Figure]] = {}
    for one in findings:
        drawing, caption = None, ""
        with style():
            if one.table.id == "karate":
                figures["karate"] = find_embedding(one)
            elif one.table.id in DEPTH_TABLES:
                drawing, caption = draw_depth(one), "Accuracy by number of state layers"
            elif one.table.id in VIOLATION_ROWS:
                drawing, caption = draw_violation(one), "Mean violation on the test part by epoch"
            if drawing is not None:
                path = folder / f"{one.table.id}.png"
                drawing.savefig(path)
                figures[one.table.id] = [Figure(path, caption)]
    return figures


def find_embedding(findings: Findings) -> list[Figure]:
    """The figures that the karate run itself has drawn."""
    runs = [cell.measured.run for cell in findings.cells if cell.row.id == "lp" and cell.measured]
    return [
        Figure(path, EMBEDDING_CAPTIONS[path.suffix]) for run in runs for path in run.embeddings
    ]


def draw_depth(findings: Findings) -> Drawing | None:
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


def draw_violation(findings: Findings) -> Drawing | None:
    """How far the states of the test part are from satisfying the constraints, by epoch."""
    wanted = VIOLATION_ROWS[findings.table.id]
    panels = {}
    for row in wanted:
        cells = [c for c in findings.cells if c.row.id == row]
        # The axis is logarithmic.
        curves = {
            c.column.title: positive
            for c in cells
            if c.measured and (positive := [(e, v) for e, v in c.measured.run.violation if v > 0])
        }
        if curves:
            panels[findings.table.row(row).model] = curves
    if not panels:
        return None
    figure = new_figure(5.2 * len(panels), 4.2, "Violation of the constraints on the test part")
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    colours = {column.title: f"C{i}" for i, column in enumerate(findings.table.columns)}
    for panel, (model, curves) in zip(axes, panels.items(), strict=True):
        for title, curve in curves.items():
            panel.semilogy(*zip(*curve, strict=True), color=colours[title], label=title)
        panel.set(xlabel="epoch", title=model)
        panel.legend()
    axes[0].set_ylabel("mean |x - f(x)|")
    return figure
