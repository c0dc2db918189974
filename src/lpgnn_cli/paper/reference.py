"""The paper's values, from `reference.yaml`, and the tables of our own, from `reach.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from lpgnn_cli.config.variants import UNCHANGED, run_name

Protocol = Literal["best_epoch", "honest"]
Kind = Literal["paper", "quoted", "ours"]


@dataclass(frozen=True)
class Preset:
    """An option of the group `experiment`, and the variant that is applied to it."""

    experiment: str
    variant: str = UNCHANGED

    @property
    def name(self) -> str:
        """What runs of it are called."""
        return run_name(self.experiment, self.variant)

    @property
    def overrides(self) -> list[str]:
        """What to write after `lpgnn train`."""
        variant = [] if self.variant == UNCHANGED else [f"variant={self.variant}"]
        return [f"experiment={self.experiment}", *variant]


@dataclass(frozen=True)
class Value:
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
    """A value of the paper, where it has one, and the presets that measure it here."""

    paper: Value | None
    quoted: bool
    presets: tuple[Preset, ...]


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
    """One table of the paper; `protocol` says which measured value the paper's own is like."""

    id: str
    title: str
    note: str
    protocol: Protocol
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    compare: tuple[tuple[str, str], ...]

    @property
    def presets(self) -> list[Preset]:
        """All that measure some cell."""
        cells = (cell for row in self.rows for cell in row.cells.values())
        return list(dict.fromkeys(preset for cell in cells for preset in cell.presets))

    def row(self, id: str) -> Row:
        return next(row for row in self.rows if row.id == id)


@cache
def reference_tables() -> dict[str, Table]:
    """All tables by name, in the order of the paper."""
    return _tables("reference.yaml")


@cache
def reach_tables() -> dict[str, Table]:
    """How far labels travel: tables that are in no paper."""
    return _tables("reach.yaml")


def _tables(file: str) -> dict[str, Table]:
    import yaml

    text = files("lpgnn_cli.paper").joinpath(file).read_text(encoding="utf-8")
    return {id: _table(id, raw) for id, raw in yaml.safe_load(text).items()}


@cache
def presets_by_name() -> dict[str, Preset]:
    """Every preset that measures some cell, by the name of its runs."""
    return {
        preset.name: preset
        for table in (reference_tables() | reach_tables()).values()
        for preset in table.presets
    }


def _table(id: str, raw: Mapping[str, Any]) -> Table:
    rows: dict[str, Row] = {}
    for one in raw["rows"]:
        base = rows[one["variant_of"]] if "variant_of" in one else None
        rows[str(one["id"])] = _row(one, base)
    variants = [(row.variant_of, row.id) for row in rows.values() if row.variant_of]
    return Table(
        id=id,
        title=raw["title"],
        note=raw.get("note", ""),
        protocol=raw["protocol"],
        columns=tuple(Column(**column) for column in raw["columns"]),
        rows=tuple(rows.values()),
        compare=tuple([*variants, *((a, b) for a, b in raw["compare"])]),
    )


def _row(raw: Mapping[str, Any], base: Row | None) -> Row:
    if base is None:
        cells = {id: _cell(cell, raw["kind"]) for id, cell in raw["cells"].items()}
    else:
        cells = {id: _under(raw["variant"], cell) for id, cell in base.cells.items()}
    return Row(
        id=str(raw["id"]),
        model=str(raw["model"]),
        kind=raw["kind"],
        variant_of=raw.get("variant_of"),
        cells=cells,
    )


def _cell(raw: Mapping[str, Any], kind: Kind) -> ReferenceCell:
    paper = raw.get("paper")
    return ReferenceCell(
        paper=Value(float(paper[0]), paper[1]) if paper else None,
        quoted=kind == "quoted" or bool(raw.get("quoted", False)),
        presets=tuple(Preset(name) for name in raw.get("presets", ())),
    )


def _under(variant: str, cell: ReferenceCell) -> ReferenceCell:
    """The cell of a variant: what measures the row itself, with one change. No paper has it."""
    presets = tuple(Preset(preset.experiment, variant) for preset in cell.presets)
    return ReferenceCell(paper=None, quoted=False, presets=presets)
