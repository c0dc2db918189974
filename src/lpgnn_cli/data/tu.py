"""Reader of the TU text format."""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lpgnn_cli.data.archive import TARGETS, TuFiles
from lpgnn_cli.data.rows import lines_of_numbers
from lpgnn_cli.errors import UserError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TuTables:
    """What the files say, checked, with ids from 0; a table that is not there has no columns."""

    source: Ints  # (A,)
    target: Ints  # (A,)
    graph_ptr: Ints  # (G + 1,)
    classes: Ints  # (C,) the class values, ascending
    targets: Ints  # (G,) indices of `classes`; (0,) where graphs have no classes
    node_labels: Ints  # (N, columns)
    node_attributes: Floats  # (N, columns)
    edge_labels: Ints  # (A, columns)
    edge_attributes: Floats  # (A, columns)

    @property
    def num_graphs(self) -> int:
        return self.graph_ptr.size - 1

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """For storage, every integer array in the smallest type that holds it."""
        return {f.name: _compact(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> TuTables:
        tables: dict[str, Any] = {}
        for field in fields(cls):
            dtype = np.float32 if field.name.endswith("attributes") else np.int64
            tables[field.name] = arrays[field.name].astype(dtype, copy=False)
        return cls(**tables)


def read_tables(files: TuFiles) -> TuTables:
    """Parse and check a dataset; UserError names the file and the line of what is wrong."""
    indicator = _integers(files, "graph_indicator", columns=1)[:, 0]
    num_graphs = int(indicator.max(initial=0))
    labels = np.zeros(0, dtype=np.int64)
    if TARGETS in files.content:
        labels = _integers(files, TARGETS, columns=1)[:, 0]
        num_graphs = labels.size
    graph_ptr = _graph_pointers(files, indicator, num_graphs)
    classes, targets = np.unique(labels, return_inverse=True)
    num_nodes = indicator.size
    arcs = _arcs(files, indicator)
    return TuTables(
        source=np.ascontiguousarray(arcs[:, 0]),
        target=np.ascontiguousarray(arcs[:, 1]),
        graph_ptr=graph_ptr,
        classes=classes,
        targets=targets,
        node_labels=_rows(files, "node_labels", num_nodes, "node"),
        node_attributes=_attributes(files, "node_attributes", num_nodes, "node"),
        edge_labels=_rows(files, "edge_labels", arcs.shape[0], "arc"),
        edge_attributes=_attributes(files, "edge_attributes", arcs.shape[0], "arc"),
    )


def _graph_pointers(files: TuFiles, indicator: Ints, num_labels: int) -> Ints:
    label = files.label("graph_indicator")
    if num_labels == 0 or indicator.size == 0:
        raise UserError(f"{label}, line 1: {files.name} has no graphs.")
    steps = np.diff(indicator, prepend=0)
    steps[0] += steps[0] == 0  # a first graph 0 is as wrong as a gap
    wrong = np.flatnonzero((steps < 0) | (steps > 1))
    if indicator[0] != 1 or wrong.size:
        line = 0 if indicator[0] != 1 else int(wrong[0])
        before = indicator[line - 1] if line else 0
        raise UserError(
            f"{label}, line {line + 1}: graph id {indicator[line]} follows {before}, but ids start "
            "at 1 and rise by at most 1 from line to line, since a graph must have nodes."
        )
    num_graphs = int(indicator[-1])
    if num_graphs < num_labels:
        raise UserError(
            f"{files.label('graph_labels')}, line {num_graphs + 1}: graph {num_graphs + 1} is "
            f"empty, {files.name}_graph_indicator.txt has no node of it."
        )
    if num_graphs > num_labels:
        line = int(np.searchsorted(indicator, num_labels + 1))
        raise UserError(
            f"{label}, line {line + 1}: graph {num_labels + 1} has no class, since "
            f"{files.name}_graph_labels.txt has only {num_labels} lines."
        )
    return np.concatenate([[0], np.cumsum(np.bincount(indicator - 1))])


def check_classes(tables: TuTables, origin: str, name: str) -> None:
    """Refuse classes that cannot be learnt; graphs that are only scored may have them."""
    file = f"{origin}: {name}_graph_labels.txt"
    counts = np.bincount(tables.targets, minlength=tables.classes.size)
    if counts.min() == 1:
        alone = int(np.flatnonzero(counts[tables.targets] == 1)[0])
        value = tables.classes[tables.targets[alone]]
        raise UserError(
            f"{file}, line {alone + 1}: class {value} has one member; a class needs at least two "
            "graphs to be learnt and tested."
        )
    if tables.classes.size == 1:
        raise UserError(
            f"{file}, line 1: all graphs are of class {tables.classes[0]}, so there is nothing to "
            "learn."
        )


def _arcs(files: TuFiles, indicator: Ints) -> Ints:
    arcs = _integers(files, "A", columns=2)
    label, num_nodes = files.label("A"), indicator.size
    outside = np.flatnonzero(((arcs < 1) | (arcs > num_nodes)).any(axis=1))
    if outside.size:
        line = int(outside[0])
        raise UserError(
            f"{label}, line {line + 1}: the arc {arcs[line, 0]}, {arcs[line, 1]} names a node that "
            f"is not among 1 to {num_nodes}."
        )
    arcs = arcs - 1
    across = np.flatnonzero(indicator[arcs[:, 0]] != indicator[arcs[:, 1]])
    if across.size:
        line = int(across[0])
        graphs = indicator[arcs[line]]
        raise UserError(
            f"{label}, line {line + 1}: the arc {arcs[line, 0] + 1}, {arcs[line, 1] + 1} joins "
            f"graph {graphs[0]} and graph {graphs[1]}; an arc must stay inside its graph."
        )
    return arcs


def _rows(files: TuFiles, suffix: str, rows: int, what: str) -> Ints:
    if suffix not in files.content:
        return np.zeros((rows, 0), dtype=np.int64)
    table = _integers(files, suffix, columns=None)
    _check_rows(files, suffix, table.shape[0], rows, what)
    return table


def _attributes(files: TuFiles, suffix: str, rows: int, what: str) -> Floats:
    if suffix not in files.content:
        return np.zeros((rows, 0), dtype=np.float32)
    table = _parse(files, suffix, None, np.float64)
    _check_rows(files, suffix, table.shape[0], rows, what)
    return as_single(table, files.label(suffix))


def as_single(table: npt.NDArray[np.float64], label: str, first: int = 0) -> Floats:
    """In single precision; `first` is the line before the first one, for the sentence."""
    with np.errstate(over="ignore"):
        single = table.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(single).all(axis=1))
    if wrong.size:
        line = int(wrong[0])
        value = table[line][~np.isfinite(single[line])][0]
        raise UserError(
            f"{label}, line {first + line + 1}: {value} is not a finite number of single precision."
        )
    return single


def _check_rows(files: TuFiles, suffix: str, found: int, expected: int, what: str) -> None:
    if found != expected:
        raise UserError(
            f"{files.label(suffix)}, line {min(found, expected) + 1}: the file has {found} lines, "
            f"but there are {expected} {what}s and it must have one line for each."
        )


def _integers(files: TuFiles, suffix: str, columns: int | None) -> Ints:
    table: Ints = _parse(files, suffix, columns, np.int64)
    return table


def _parse(files: TuFiles, suffix: str, columns: int | None, dtype: Any) -> npt.NDArray[Any]:
    """The table in a file, one row per line; `columns` None: as many as the first line has."""
    text = io.BytesIO(files.content[suffix])
    tables = list(lines_of_numbers(text, files.label(suffix), dtype, columns))
    return np.concatenate(tables) if tables else np.zeros((0, columns or 0), dtype=dtype)


def _compact(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind != "i" or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for dtype in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array
