"""Sweeps under `protocol=nested` in the report: the fair table, all sweeps, and paired tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lpgnn_cli.formatting import csv_text, duration, mean_std, metric_mean_std, p_text, signed
from lpgnn_cli.metrics import in_per_cent
from lpgnn_cli.paper.document import NOT_RUN, NOTHING, Section
from lpgnn_cli.paper.fair import (
    DATASETS,
    MODELS,
    OURS,
    RIVALS,
    WITH_FAIR_SPLITS,
    FairCell,
    Model,
    fair_cells,
    place_of,
)
from lpgnn_cli.paper.nested import NestedSweep
from lpgnn_cli.reporting.grid import RUN, Grid
from lpgnn_cli.reporting.significance import PairedTest, paired_test
from lpgnn_cli.sweeps.nested import NESTED

INTRO = [
    "Hyperparameters and epochs chosen without the test parts: every outer fold chooses among the "
    "combinations by its own inner validation part, and its choice is trained again and scored on "
    "its test part, from zero. Mean ± population standard deviation over the outer folds.",
    "Where the last epoch counts, as it does for LP-GNN and GNN*, the choice is trained on all the "
    "other graphs; rivals, whose epoch a validation part selects, on nine tenths of them. GIN has "
    "a row of its own in which its last epoch counts, too: both learn from the same graphs there.",
    "Differences are paired by outer fold, between sweeps on the same graphs and folds.",
]
BY_LOSS = "°"
BY_LOSS_LEGEND = (
    f"{BY_LOSS} The validation loss selected the epoch (protocol.select=loss). Elsewhere it is the "
    "last one where the learning rate goes down to zero by plan, else the one that is best on the "
    "validation part (protocol.select=auto)."
)
MARKS = "ᵃᵇᶜᵈᵉᶠᵍʰ"
# Controls stand below what they are controls of; most formats drop plain spaces.
INDENT = "\u00a0"

Cells = dict[tuple[Model, str], FairCell]


def nested_section(sweeps: Sequence[NestedSweep]) -> Section:
    cells = fair_cells(sweeps)
    marks = _marks(cells)
    listed = _list(sweeps)
    return Section(
        id=NESTED,
        title="Selected without the test parts",
        intro=[*INTRO, *_legend(cells, marks)],
        overview=_matrix(cells, marks) if cells else listed,
        details=listed if cells else Grid([], []),
        comparisons=_comparisons(sweeps, cells),
        notes=[],
    )


def nested_csv(sweeps: Sequence[NestedSweep]) -> str:
    """One row per sweep, with fractions."""
    header = ["dataset", "sweep", "model", "metric", "mean", "std", "persistent_mean", "inner_mean"]
    header += ["combinations", "folds", "seeds", "by_fold", "select", "seconds", "command"]
    rows = [
        [
            *(sweep.dataset, sweep.name, sweep.model, sweep.metric),
            *(float(np.mean(sweep.figures)), float(np.std(sweep.figures))),
            float(np.mean(sweep.persistent)) if sweep.persistent else "",
            *(float(np.mean(sweep.inner)), sweep.combinations, len(sweep.figures), sweep.seeds),
            " ".join(f"{figure:g}" for figure in sweep.figures),
            *(sweep.select, "" if sweep.seconds is None else sweep.seconds, sweep.command),
        ]
        for sweep in sweeps
    ]
    return csv_text(header, rows)


def compare(one: NestedSweep, other: NestedSweep) -> PairedTest | None:
    """One minus other, where both were scored on the same folds of the same graphs."""
    alike = ("dataset_fingerprint", "split_fingerprint", "metric")
    if any(getattr(one, name) != getattr(other, name) for name in alike):
        return None
    if len(one.figures) != len(other.figures):
        return None
    scale = 100 if in_per_cent(one.metric) else 1
    differences = [scale * (a - b) for a, b in zip(one.figures, other.figures, strict=True)]
    return paired_test(differences, overlap=1 / (len(differences) - 1))


def _matrix(cells: Cells, marks: dict[str, str]) -> Grid:
    """Models by datasets."""
    rows = [
        [
            f"{INDENT}{model.title}" if model.variation_of else model.title,
            *[_cell_text(cells.get((model, dataset)), marks) for dataset in DATASETS],
        ]
        for model in MODELS
    ]
    return Grid(["model", *DATASETS.values()], rows, break_at=" ±")


def _cell_text(cell: FairCell | None, marks: dict[str, str]) -> str:
    if cell is None:
        return NOT_RUN
    scale = 100 if in_per_cent(cell.sweep.metric) else 1
    figures = [scale * figure for figure in cell.sweep.figures]
    text = mean_std(float(np.mean(figures)), float(np.std(figures)))
    return text + (BY_LOSS if cell.by_loss else "") + marks.get(cell.remark, "")


def _marks(cells: Cells) -> dict[str, str]:
    """A letter for each remark, in their order."""
    remarks = dict.fromkeys(cell.remark for cell in cells.values() if cell.remark)
    return dict(zip(remarks, MARKS, strict=False))


def _legend(cells: Cells, marks: dict[str, str]) -> list[str]:
    lines = [BY_LOSS_LEGEND] if any(cell.by_loss for cell in cells.values()) else []
    lines += [f"{mark} {remark}." for remark, mark in marks.items()]
    shown = {dataset for _, dataset in cells}
    borrowed = [name for data, name in DATASETS.items() if data in shown & WITH_FAIR_SPLITS]
    if borrowed:
        lines.append(f"On {' and '.join(borrowed)} the folds are those of Errica et al. (2020).")
    return lines


def _list(sweeps: Sequence[NestedSweep]) -> Grid:
    header = ["dataset", "sweep", "model", NESTED, "persistent", "apart", "inner validation"]
    header += ["combinations", "folds x seeds", "select", "time", RUN]
    rows = [
        [
            *(sweep.dataset, sweep.name, sweep.model),
            *(_text(sweep, sweep.figures), _text(sweep, sweep.persistent)),
            *(NOTHING if math.isnan(sweep.apart) else signed(sweep.apart),),
            *(_text(sweep, sweep.inner), str(sweep.combinations)),
            *(f"{len(sweep.figures)} x {sweep.seeds}", sweep.select),
            *(NOTHING if sweep.seconds is None else duration(sweep.seconds), sweep.command),
        ]
        for sweep in sweeps
    ]
    return Grid(header, rows, labels=3)


def _text(sweep: NestedSweep, figures: Sequence[float]) -> str:
    if not figures:
        return NOTHING
    mean, std = float(np.mean(figures)), float(np.std(figures))
    return metric_mean_std(sweep.metric, mean, std, len(figures))


@dataclass(frozen=True)
class _Pair:
    first: NestedSweep
    second: NestedSweep
    titles: tuple[str, str]
    on: str


def _comparisons(sweeps: Sequence[NestedSweep], cells: Cells) -> Grid:
    header = ["comparison", "on", "pairs", "difference", "p", "p corrected"]
    rows = []
    for pair, test in _tested(sweeps, cells):
        values = [signed(test.difference), p_text(test.p_flips), p_text(test.p_corrected)]
        rows.append([" minus ".join(pair.titles), pair.on, str(test.pairs), *values])
    return Grid(header, rows, labels=2)


def comparison_rows(sweeps: Sequence[NestedSweep]) -> list[list[str]]:
    """The paired tests as rows of `comparisons_csv`."""
    return [
        [
            *(NESTED, pair.first.name, pair.second.name, pair.first.dataset, NESTED),
            *(str(test.pairs), f"{test.difference:.3f}"),
            *(f"{test.p_flips:.5g}", f"{test.p_corrected:.5g}", ""),
        ]
        for pair, test in _tested(sweeps, fair_cells(sweeps))
    ]


def _tested(sweeps: Sequence[NestedSweep], cells: Cells) -> Iterator[tuple[_Pair, PairedTest]]:
    for pair in (*_fair_pairs(cells), *_other_pairs(sweeps, cells)):
        test = compare(pair.first, pair.second)
        if test is not None:
            yield pair, test


def _fair_pairs(cells: Cells) -> Iterator[_Pair]:
    """LP-GNN minus each rival and minus its controls, dataset by dataset."""
    for dataset, name in DATASETS.items():
        for model in (model for model in OURS if not model.variation_of):
            controls = [other for other in OURS if other.variation_of == model.title]
            for other in (*RIVALS, *controls):
                one, against = cells.get((model, dataset)), cells.get((other, dataset))
                if one and against:
                    yield _Pair(one.sweep, against.sweep, (_title(one), _title(against)), name)


def _title(cell: FairCell) -> str:
    model = cell.model
    whole = f"{model.variation_of}, {model.title}" if model in RIVALS and model.variation_of else ""
    return (whole or model.title) + (BY_LOSS if cell.by_loss else "")


def _other_pairs(sweeps: Sequence[NestedSweep], cells: Cells) -> Iterator[_Pair]:
    """Sweeps that are no part of the fair table, with each other and with those that are."""
    shown = [cell.sweep for cell in cells.values()]
    free = [sweep for sweep in sweeps if place_of(sweep) is None]
    for one, other in combinations([s for s in sweeps if s in free or s in shown], 2):
        if one in free or other in free:
            yield _Pair(one, other, (one.name, other.name), one.dataset)
