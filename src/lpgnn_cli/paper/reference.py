"""The paper's figures, from `reference.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Protocol = Literal["best_epoch", "honest"]
Kind = Literal["paper", "quoted", "ours"]


@dataclass(frozen=True)
class Figure:
    """An accuracy in per cent, as the paper prints it."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class Column:
    """`part` is train or test; `seed` restricts a run to the units of its n-th seed."""

    id: str
    title: str
    part: Literal["train", "test"] = "test"
    seed: int | None = None


@dataclass(frozen=True)
class ReferenceCell:
    """A figure of the paper, where it has one, and the presets that measure it here."""

    paper: Figure | None
    quoted: bool
    presets: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One model. `kind` says whose row it is: the paper's, quoted by the paper, or ours."""

    id: str
    model: str
    kind: Kind
    variant_of: str | None
    cells: Mapping[str, ReferenceCell]


@dataclass(frozen=True)
class Table:
    """One table of the paper; `protocol` is the figure that the paper's own is like."""

    id: str
    title: str
    note: str
    protocol: Protocol
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    compare: tuple[tuple[str, str], ...]

    def row(self, id: str) -> Row:
        return next(row for row in self.rows if row.id == id)


@cache
def reference_tables() -> dict[str, Table]:
    """All tables by name, in the order of the paper."""
    import yaml

    text = files("lpgnn_cli.paper").joinpath("reference.yaml").read_text(encoding="utf-8")
    return {id: _table(id, raw) for id, raw in yaml.safe_load(text).items()}


def preset_names() -> set[str]:
    """Every preset that measures some cell."""
    return {
        preset
        for table in reference_tables().values()
        for row in table.rows
        for cell in row.cells.values()
        for preset in cell.presets
    }


def _table(id: str, raw: Mapping[str, Any]) -> Table:
    rows = tuple(_row(row) for row in raw["rows"])
    variants = [(row.variant_of, row.id) for row in rows if row.variant_of]
    return Table(
        id=id,
        title=raw["title"],
        note=raw.get("note", ""),
        protocol=raw["protocol"],
        columns=tuple(Column(**column) for column in raw["columns"]),
        rows=rows,
        compare=tuple([*variants, *((a, b) for a, b in raw["compare"])]),
    )


def _row(raw: Mapping[str, Any]) -> Row:
    return Row(
        id=str(raw["id"]),
        model=str(raw["model"]),
        kind=raw["kind"],
        variant_of=raw.get("variant_of"),
        cells={id: _cell(cell, raw["kind"]) for id, cell in raw["cells"].items()},
    )


def _cell(raw: Mapping[str, Any], kind: Kind) -> ReferenceCell:
    paper = raw.get("paper")
    return ReferenceCell(
        paper=Figure(float(paper[0]), paper[1]) if paper else None,
        quoted=kind == "quoted" or bool(raw.get("quoted", False)),
        presets=tuple(raw.get("presets", ())),
    )
