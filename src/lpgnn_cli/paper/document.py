"""A report before it is drawn: sections of plain grids of text, the same for every format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from lpgnn_cli.formatting import (
    VISIBLE,
    compact,
    csv_text,
    duration,
    mean_std,
    p_text,
    signed,
)
from lpgnn_cli.paper.cells import Cell, Measured, Spread, fill
from lpgnn_cli.paper.presets import compose_ahead, settings_digest
from lpgnn_cli.paper.reference import Protocol, Table, Value
from lpgnn_cli.paper.runs import PresetRun
from lpgnn_cli.paper.significance import Comparison, compare_rows
from lpgnn_cli.reporting.grid import RUN, Grid
from lpgnn_cli.reporting.significance import PairedTest
from lpgnn_cli.runsummary import AGREEMENT

NOT_RUN = "not run"
NOTHING = "-"
PROTOCOLS: dict[Protocol, str] = {"best_epoch": "best epoch", "honest": "honest"}
MODIFIED_SHOWN = 5

LEGEND = [
    "Accuracies in per cent, mean ± population standard deviation over folds and seeds; of the "
    "test phase from zero, which is what unseen graphs get, unless they are marked otherwise.",
    "honest: the last epoch, or the best epoch of the validation part where there is one. "
    "No test label is used for that choice.",
    "best epoch: the epoch with the best mean test accuracy over the folds, as in the paper's "
    "cross-validation. It is chosen on the test folds, so it is optimistic. The epoch is chosen on "
    "the curve of training, and scored again from zero where that is another thing.",
    "per-fold maximum: every fold at its own best test epoch, on the curve of training; more "
    "optimistic still, and what several published implicit networks report.",
    "persistent: at states carried along through training, which no unseen graph has. Apart: from "
    "zero minus persistent at the honest epoch; more than one point is marked !.",
    "The recipe of whole graphs was chosen on parts held out of training folds: its "
    "normalisation, dropout and schedule on MUTAG, PTC, IMDB-B and PROTEINS; its batches and "
    "its hidden layer on nodes from 16 runs on one such part of NCI1 (370 graphs), in other "
    "sizes than the final ones, with a look at PTC, where they made no difference with K = 1 "
    "and 2.7 percentage points less with K = 3. Those of the artificial tasks were chosen on "
    "validation parts of other seeds than these.",
    "LP-GNN with several layers is the general model, propagation.upper=all, but for rows to the "
    "letter, which have the paper's own.",
    "Rows marked ours are in no paper: states frozen is the control without diffusion, no adjoint "
    "the one with multipliers that stay zero, to the letter the method under recipe=paper. Values "
    "marked quoted the paper took from others' papers.",
]
TESTS = (
    "Differences are paired by fold (seeds of a fold are averaged; generated data by seed). "
    "p: exact test by sign flips; p corrected: t-test with the variance corrected for the overlap "
    "of training folds (Nadeau and Bengio). Folds are not independent and many rows are compared, "
    "so a single p below 0.05 is weak evidence; best-epoch values are chosen on the test folds."
)


@dataclass(frozen=True)
class Figure:
    """A picture with its caption."""

    path: Path
    caption: str


@dataclass
class Section:
    """One table of the paper."""

    id: str
    title: str
    intro: list[str]
    overview: Grid
    details: Grid
    comparisons: Grid
    notes: list[str]
    figures: list[Figure] = field(default_factory=list)


@dataclass
class Report:
    """All of it."""

    title: str
    source: str
    legend: list[str]
    sections: list[Section]


@dataclass(frozen=True)
class Findings:
    """A table with its cells filled and compared."""

    table: Table
    cells: list[Cell]
    comparisons: list[Comparison]
    modified: list[PresetRun]
    unfinished: list[PresetRun]


def find(tables: Sequence[Table], runs: Sequence[PresetRun]) -> list[Findings]:
    known = {run.preset for run in runs}
    compose_ahead(p.overrides for table in tables for p in table.presets if p in known)
    findings = []
    for table in tables:
        cells = fill(table, runs)
        own = [run for run in runs if run.preset in table.presets]
        findings.append(
            Findings(
                table=table,
                cells=cells,
                comparisons=compare_rows(table, cells),
                modified=[run for run in own if run.departures],
                unfinished=[run for run in own if not run.departures and not run.is_finished],
            )
        )
    return findings


def write_report(findings: Sequence[Findings], source: str, notes: dict[str, str]) -> Report:
    return Report(
        title="The paper's tables, measured here",
        source=source,
        # What the first line says holds for every section, the others for these tables.
        legend=LEGEND if findings else LEGEND[:1],
        sections=[_section(one, notes) for one in findings],
    )


def _section(findings: Findings, notes: dict[str, str]) -> Section:
    table = findings.table
    like = PROTOCOLS[table.protocol]
    intro = [f"Measured here ({like}); below it in brackets the paper's value and the difference."]
    return Section(
        id=table.id,
        title=table.title,
        intro=[*intro, table.note] if table.note else intro,
        overview=overview_grid(table, findings.cells),
        details=_details(table, findings.cells),
        comparisons=comparisons_grid(findings.comparisons),
        notes=notes_of(findings, notes),
    )


def overview_grid(table: Table, cells: Sequence[Cell]) -> Grid:
    by_place = {(cell.row.id, cell.column.id): cell for cell in cells}
    rows = [
        [row.model, row.kind]
        + [_overview_text(by_place.get((row.id, column.id))) for column in table.columns]
        for row in table.rows
    ]
    return Grid(["model", "whose", *[column.title for column in table.columns]], rows, labels=2)


def _overview_text(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    measured = spread_text(cell.headline) if cell.headline else NOT_RUN
    lines = [measured if cell.can_run else NOTHING]
    if cell.reference.paper:
        parts = [value_text(cell.reference.paper)]
        parts += [signed(cell.difference)] if cell.difference is not None else []
        lines.append(f"({', '.join(parts)})")
    return "\n".join(lines)


def _details(table: Table, cells: Sequence[Cell]) -> Grid:
    like = PROTOCOLS[table.protocol]
    header = ["model", "on", "honest", "best epoch", "paper", f"difference ({like})"]
    header += ["persistent", "apart", "best epoch, curve", "per-fold maximum"]
    header += ["folds x seeds", "violation", "time", RUN]
    rows = []
    for cell in cells:
        measured = cell.measured
        if measured is None:
            continue
        rows.append(
            [
                cell.row.model,
                cell.column.title,
                spread_text(measured.honest),
                spread_text(measured.best_epoch),
                _paper_text(cell),
                _difference_text(cell),
                spread_text(measured.persistent),
                _apart_text(measured),
                spread_text(measured.curve_best),
                spread_text(measured.per_fold_maximum),
                f"{measured.folds} x {measured.seeds}" + (" *" if measured.lost else ""),
                compact(measured.violation),
                duration(measured.seconds),
                measured.run.place,
            ]
        )
    return Grid(header, rows, labels=2)


def _apart_text(measured: Measured) -> str:
    apart = measured.from_zero_minus_persistent
    far = apart is not None and abs(apart) > 100 * AGREEMENT + 1e-9
    return signed(apart) + (" !" if far else "")


def _paper_text(cell: Cell) -> str:
    if cell.reference.paper is None:
        return "ours"
    return value_text(cell.reference.paper) + (" (quoted)" if cell.reference.quoted else "")


def _difference_text(cell: Cell) -> str:
    if cell.difference is None:
        return NOTHING
    short = cell.difference <= -VISIBLE and not cell.reference.quoted
    return signed(cell.difference) + (" falls short" if short else "")


def comparisons_grid(comparisons: Sequence[Comparison]) -> Grid:
    header = ["comparison", "on", "pairs"]
    for name in PROTOCOLS.values():
        header += [f"difference, {name}", "p", "p corrected"]
    rows = []
    for comparison in comparisons:
        row = [_comparison_name(comparison), comparison.first.column.title]
        tests = comparison.tests
        row.append(str(next(iter(tests.values())).pairs) if tests else comparison.reason)
        for protocol in PROTOCOLS:
            row += _test_text(tests.get(protocol))
        rows.append(row)
    return Grid(header, rows, labels=2)


def _comparison_name(comparison: Comparison) -> str:
    return f"{comparison.first.row.model} minus {comparison.second.row.model}"


def _test_text(test: PairedTest | None) -> list[str]:
    if test is None:
        return [NOTHING] * 3
    return [signed(test.difference), p_text(test.p_flips), p_text(test.p_corrected)]


def notes_of(findings: Findings, texts: dict[str, str]) -> list[str]:
    notes = []
    cells = findings.cells
    waiting = sorted(_names(c for c in cells if c.can_run) - _names(c for c in cells if c.measured))
    if waiting:
        notes.append(f"Not run: {', '.join(waiting)}.")
    for cell in cells:
        short = cell.difference is not None and cell.difference <= -VISIBLE
        if cell.row.kind == "paper" and short and not cell.reference.quoted:
            assert cell.difference is not None
            assert cell.measured is not None
            why = texts.get(cell.measured.run.preset.name, "")
            where = f"{cell.row.model} on {cell.column.title}"
            notes.append(f"{where} falls short by {-cell.difference:.1f}. {why}".strip())
        if cell.measured and cell.measured.lost:
            lost = f"{cell.measured.lost} of {cell.measured.lost + len(cell.measured.units)}"
            notes.append(f"* {cell.measured.run.preset.name}: {lost} units did not finish.")
    for run in findings.unfinished:
        notes.append(f"{run.place} ({run.preset.name}) is {run.record.state}: not counted.")
    for run in findings.modified[:MODIFIED_SHOWN]:
        changed = ", ".join(run.departures[:3]) + (", ..." if len(run.departures) > 3 else "")
        notes.append(f"{run.place} is {run.preset.name} modified, not counted: {changed}.")
    if len(findings.modified) > MODIFIED_SHOWN:
        notes.append(f"And {len(findings.modified) - MODIFIED_SHOWN} more modified runs.")
    return notes


def _names(cells: Iterable[Cell]) -> set[str]:
    return {cell.reference.presets[0].name for cell in cells}


def cells_csv(findings: Sequence[Findings]) -> str:
    """Every cell with all that is known about it, one row each."""
    return csv_text(CELL_COLUMNS, [_cell_row(cell) for one in findings for cell in one.cells])


CELL_COLUMNS = [
    *("table", "row", "model", "whose", "column", "paper", "paper_std", "paper_quoted", "state"),
    *("best_epoch", "best_epoch_std", "honest", "honest_std", "honest_rule", "states"),
    *("persistent", "persistent_std", "from_zero_minus_persistent", "best_epoch_curve"),
    *("per_fold_maximum", "compared", "difference", "folds", "seeds", "units_lost"),
    *("violation", "seconds", "preset", "run"),
    *("config", "started", "version", "git_commit", "device", "segment_backend", "command"),
]


def _cell_row(cell: Cell) -> list[str]:
    paper = cell.reference.paper
    row = [cell.table.id, cell.row.id, cell.row.model, cell.row.kind, cell.column.id]
    row += [f"{paper.mean:g}" if paper else "", _plain(paper.std if paper else None)]
    row += [str(cell.reference.quoted).lower() if paper else ""]
    if cell.measured is None:
        row += [NOT_RUN if cell.can_run else "quoted only"]
        return row + [""] * (len(CELL_COLUMNS) - len(row))
    return [*row, "measured", *_measured_row(cell, cell.measured)]


def _measured_row(cell: Cell, measured: Measured) -> list[str]:
    record = measured.run.record
    states = "persistent" if cell.headline and cell.headline.persistent else "from zero"
    return [
        *(*_pair(measured.best_epoch), *_pair(measured.honest), measured.rule, states),
        *(*_pair(measured.persistent), _plain(measured.from_zero_minus_persistent)),
        *(_pair(measured.curve_best)[0], _pair(measured.per_fold_maximum)[0]),
        *(cell.table.protocol, _plain(cell.difference)),
        *(str(measured.folds), str(measured.seeds), str(measured.lost)),
        *(_plain(measured.violation, 6), _plain(measured.seconds, 1)),
        *(measured.run.preset.name, measured.run.place, settings_digest(measured.run.preset)),
        datetime.fromtimestamp(record.started).isoformat(timespec="seconds"),
        *(record.version, record.git_commit or "", record.device, record.segment_backend),
        " ".join(["lpgnn", *record.argv]),
    ]


def comparisons_csv(findings: Sequence[Findings], more: Iterable[Sequence[str]] = ()) -> str:
    """Every comparison under both protocols, one row each, and those of other sections."""
    header = ["table", "first", "second", "column", "protocol", "pairs", "difference"]
    header += ["p_sign_flips", "p_corrected_t", "remark"]
    rows = []
    for one in findings:
        for c in one.comparisons:
            place = [one.table.id, c.first.row.id, c.second.row.id, c.first.column.id]
            for protocol, test in c.tests.items():
                values = [_plain(test.difference), _plain(test.p_flips, 5)]
                values += [_plain(test.p_corrected, 5), ""]
                rows.append([*place, protocol, str(test.pairs), *values])
            if not c.tests:
                rows.append([*place, "", "", "", "", "", c.reason])
    return csv_text(header, [*rows, *more])


def _plain(value: float | None, digits: int = 3) -> str:
    return "" if value is None or value != value else f"{round(value, digits):g}"


def _pair(spread: Spread | None) -> tuple[str, str]:
    """Mean and standard deviation."""
    return (_plain(spread.mean), _plain(spread.std)) if spread else ("", "")


def spread_text(spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    return mean_std(spread.mean, spread.std) + (" persistent" if spread.persistent else "")


def value_text(value: Value) -> str:
    """As precise as the paper prints it."""
    return mean_std(value.mean, value.std, _as_printed)


def _as_printed(value: float) -> str:
    return f"{value:.1f}" if round(value, 1) == value else f"{value:.2f}"
