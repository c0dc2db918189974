"""`lpgnn report reach`: accuracy by distance, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpgnn_cli.formatting import duration
from lpgnn_cli.metrics import TRANSITIONS, TRANSITIONS_BACKWARD
from lpgnn_cli.paper.cells import Cell, Measured
from lpgnn_cli.paper.document import (
    NOTHING,
    Figure,
    Findings,
    Report,
    Section,
    comparisons_grid,
    notes_of,
    overview_grid,
    spread_text,
)
from lpgnn_cli.reporting.grid import RUN, Grid
from lpgnn_cli.reporting.look import new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHAINS = "chains"
LEGEND = [
    "Accuracies in per cent (ROC AUC where it says so), mean ± population standard deviation over "
    "splits and seeds; of the test phase from zero, at the epoch that the validation part selects.",
    "f_a per epoch: how often the transition is evaluated in an epoch of training, forward + "
    "backward, in passes over all nodes. Time is that of one split and seed, on one thread of a "
    "machine that others used as well: it tells orders of magnitude.",
    "states frozen: the control without diffusion. no adjoint: the one with multipliers that stay "
    "zero.",
]
CAPTION = "Chains: accuracy, evaluations of f_a and time by length"


def reach_report(findings: Sequence[Findings], source: str, notes: dict[str, str]) -> Report:
    """The tables of `reach.yaml`."""
    return Report(
        title="How far labels travel",
        source=source,
        legend=LEGEND,
        sections=[_section(one, notes) for one in findings],
    )


def _section(findings: Findings, notes: dict[str, str]) -> Section:
    table = findings.table
    texts = [f"{name}: {notes[name]}" for name in _measured_presets(findings) if name in notes]
    return Section(
        id=table.id,
        title=table.title,
        intro=[table.note] if table.note else [],
        overview=overview_grid(table, findings.cells),
        details=_details(findings.cells),
        comparisons=comparisons_grid(findings.comparisons),
        notes=[*notes_of(findings, {}), *texts],
    )


def _measured_presets(findings: Findings) -> list[str]:
    return [cell.measured.run.preset.name for cell in findings.cells if cell.measured]


def _details(cells: Sequence[Cell]) -> Grid:
    header = ["model", "on", "from zero", "f_a per epoch", "epochs", "time", "splits x seeds", RUN]
    rows = []
    for cell in cells:
        if (measured := cell.measured) is None:
            continue
        forward, backward = evaluations(measured)
        rows.append(
            [
                cell.row.model,
                cell.column.title,
                spread_text(measured.honest),
                NOTHING if math.isnan(forward) else f"{forward:.3g} + {backward:.3g}",
                str(epochs(measured)),
                duration(measured.seconds / len(measured.units)),
                f"{measured.folds} x {measured.seeds}",
                measured.run.place,
            ]
        )
    return Grid(header, rows, labels=2)


def evaluations(measured: Measured) -> tuple[float, float]:
    """Of f_a in an epoch: forward and backward."""
    train = measured.run.summary.train
    backward = train.get(TRANSITIONS_BACKWARD.name, math.nan)
    return train.get(TRANSITIONS.name, math.nan) - backward, backward


def epochs(measured: Measured) -> int:
    return max(unit.epochs for unit in measured.units)


def draw_reach(findings: Sequence[Findings], folder: Path) -> dict[str, list[Figure]]:
    """Accuracy, evaluations of f_a and time by the length of chains; nothing if none was run."""
    from matplotlib.ticker import LogLocator

    chains = next((one for one in findings if one.table.id == CHAINS), None)
    if chains is None or not any(cell.measured for cell in chains.cells):
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "reach.png"
    with style():
        figure = new_figure(12.0, 4.4, chains.table.title)
        accuracy, cost, seconds = figure.subplots(1, 3)
        for number, row in enumerate(chains.table.rows):
            cells = [c for c in chains.cells if c.row.id == row.id and c.measured]
            if cells:
                look: dict[str, Any] = {
                    "color": f"C{number}",
                    "marker": "osv^DP"[number % 6],
                    "label": row.model,
                }
                _draw_row(cells, look, accuracy, cost, seconds)
        accuracy.set(ylabel="accuracy from zero (%)", ylim=(40, 103))
        cost.set(ylabel="evaluations of f_a per epoch")
        seconds.set(ylabel="seconds per seed")
        ticks = [int(column.title) for column in chains.table.columns]
        for panel in (accuracy, cost, seconds):
            panel.set(
                xlabel="length of the chain", xscale="log", xlim=(0.8 * ticks[0], 1.25 * ticks[-1])
            )
            panel.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=7)
            panel.minorticks_off()
        for panel in (cost, seconds):
            if panel.lines:
                panel.set_yscale("log")
                panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                panel.yaxis.set_major_formatter("{x:g}")
                panel.yaxis.set_minor_formatter("")
        figure.legend(*accuracy.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.savefig(path)
    return {CHAINS: [Figure(path, CAPTION)]}


def _draw_row(
    cells: Sequence[Cell], look: dict[str, Any], accuracy: Axes, cost: Axes, seconds: Axes
) -> None:
    lengths, means, deviations, passes, times = [], [], [], [], []
    for cell in cells:
        measured = cell.measured
        assert measured is not None
        if measured.honest is None:
            continue
        lengths.append(int(cell.column.title))
        means.append(measured.honest.mean)
        deviations.append(measured.honest.std or 0.0)
        passes.append(sum(evaluations(measured)))
        times.append(measured.seconds / len(measured.units))
    accuracy.errorbar(lengths, means, deviations, capsize=3, **look)
    if all(map(math.isfinite, passes)):
        cost.plot(lengths, passes, **look)
    seconds.plot(lengths, times, **look)
