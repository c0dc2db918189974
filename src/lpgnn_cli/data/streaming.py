"""Graphs of a user's own, out of a file that need not fit into memory: some at a time, in order.

TU folders and zips, npz files of graphs, and JSON lines, each of them a graph as `node_link`
describes it. What cannot be read in this way is read as a whole instead: arcs that do not stand in
the order of their graphs, arrays that are stored by columns, features that depend on all graphs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lpgnn_cli.config.dataset import DatasetConfig, GraphsConfig, TuConfig
from lpgnn_cli.data.archive import label, opened_files
from lpgnn_cli.data.asked import without_targets
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.datasets.graphs import encode
from lpgnn_cli.data.datasets.tu_format import dataset_from_tables
from lpgnn_cli.data.node_link import JSON_LINES, from_node_link, read_lines
from lpgnn_cli.data.npz import as_matrix, opened_npz, require
from lpgnn_cli.data.rows import Rows, Table, lines_of_numbers
from lpgnn_cli.data.tu import TuTables, as_single
from lpgnn_cli.data.vocabulary import Vocabulary
from lpgnn_cli.data.walk import OutOfOrder, Piece, Reading, in_order, walk
from lpgnn_cli.errors import UserError


def stream(config: DatasetConfig, vocabulary: Vocabulary, nodes: int) -> Iterator[Dataset] | None:
    """The graphs of a file, without targets, in pieces of at most so many nodes or of one graph.

    None: they have to be read as a whole.
    """
    source: _Source
    if isinstance(config, GraphsConfig):
        by_degree = config.features in ("degree", "degree_classes")
        path, of_all = Path(config.path), by_degree and not vocabulary.degrees
        if path.suffix == JSON_LINES and of_all:
            raise UserError(
                f"dataset.features={config.features}: the network was not trained with degrees."
            )
        if path.suffix == JSON_LINES:
            return (encode(config, batch, vocabulary) for batch in _json_lines(path, nodes))
        if of_all:
            return None
        source = _Npz(config, vocabulary)
    elif isinstance(config, TuConfig) and config.path is not None:
        source = _Tu(config, vocabulary)
    else:
        return None
    return source.pieces(nodes) if source.is_in_order(nodes) else None


class _Source(ABC):
    """A file whose tables can be walked."""

    path: Path

    @abstractmethod
    def opened(self, *, structure: bool) -> Any:
        """A context with its `Reading`; of its `structure` alone, sizes and arcs. None: it has to
        be read as a whole."""

    @abstractmethod
    def dataset(self, piece: Piece) -> Dataset: ...

    def is_in_order(self, nodes: int) -> bool:
        with self.opened(structure=True) as structure:
            return structure is not None and in_order(structure, nodes)

    def pieces(self, nodes: int) -> Iterator[Dataset]:
        with self.opened(structure=False) as reading:
            try:
                for piece in walk(reading, nodes):
                    yield self.dataset(piece)
            except OutOfOrder:
                raise UserError(f"{self.path} was changed while it was read.") from None


class _Npz(_Source):
    """As `datasets.graphs` describes it."""

    REQUIRED = ("source", "target", "graph_ptr")
    OPTIONAL = ("features", "arc_labels")

    def __init__(self, config: GraphsConfig, vocabulary: Vocabulary) -> None:
        self.config, self.vocabulary = config, vocabulary
        self.path = Path(config.path)

    @contextmanager
    def opened(self, *, structure: bool) -> Iterator[Reading | None]:
        with opened_npz(self.path) as arrays:
            require(arrays, self.REQUIRED, self.path)
            wanted = {n: arrays[n] for n in (*self.REQUIRED, *self.OPTIONAL) if n in arrays}
            rows = {name: found for name, found in wanted.items() if found is not None}
            if len(rows) < len(wanted) or not all(map(_is_vector, _structure(rows))):
                yield None
                return
            yield Reading(
                sizes=Rows(self._sizes(rows["graph_ptr"]), np.zeros(0, np.int64)),
                arcs=Rows(_pairs(rows["source"], rows["target"]), np.zeros((0, 2), np.int64)),
                of_nodes={} if structure else self._of("features", rows),
                of_arcs={} if structure else self._of("arc_labels", rows),
            )

    def _of(self, name: str, rows: dict[str, Rows]) -> dict[str, Rows]:
        return {f"{self.path}: {name}": rows[name]} if name in rows else {}

    def _sizes(self, graph_ptr: Rows) -> Iterator[Table]:
        before = graph_ptr.take(1).astype(np.int64)
        if before.tolist() != [0]:
            raise UserError(f"{self.path}: graph_ptr must run from 0 to N.")
        while len(block := graph_ptr.hold(1)):
            bounds = np.concatenate([before, graph_ptr.take(len(block)).astype(np.int64)])
            sizes, before = np.diff(bounds), bounds[-1:]
            if sizes.min() <= 0:
                raise UserError(f"{self.path}: every graph must have a node.")
            yield sizes

    def dataset(self, piece: Piece) -> Dataset:
        nodes = int(piece.graph_ptr[-1])
        features = next(iter(piece.of_nodes.values()), np.zeros((nodes, 0), np.float32))
        labels = next(iter(piece.of_arcs.values()), np.zeros((len(piece.source), 0), np.float32))
        try:
            batch = GraphBatch.from_arcs(
                features=torch.from_numpy(as_matrix(features, "features")),
                source=torch.from_numpy(piece.source),
                target=torch.from_numpy(piece.target),
                arc_labels=torch.from_numpy(as_matrix(labels, "arc_labels")),
                graph_ptr=torch.from_numpy(piece.graph_ptr),
                **without_targets(len(piece.graph_ptr) - 1),
            )
        except (ValueError, TypeError) as error:
            raise UserError(f"{self.path}: {error}.") from error
        return encode(self.config, batch, self.vocabulary)


def _structure(rows: dict[str, Rows]) -> list[Rows]:
    return [rows[name] for name in ("source", "target", "graph_ptr")]


def _is_vector(rows: Rows) -> bool:
    """Of whole numbers; what is something else is blamed by who reads it as a whole."""
    held = rows.hold(0)
    return held.ndim == 1 and held.dtype.kind in "iu"


def _pairs(source: Rows, target: Rows) -> Iterator[Table]:
    while len(block := source.hold(1)):
        ends = target.take(len(block))
        if len(ends) < len(block):
            raise OutOfOrder
        yield np.stack([source.take(len(block)), ends], axis=1).astype(np.int64)
    if len(target.hold(1)):
        raise OutOfOrder


class _Tu(_Source):
    """As the collection publishes it."""

    def __init__(self, config: TuConfig, vocabulary: Vocabulary) -> None:
        assert config.path is not None
        self.config, self.vocabulary = config, vocabulary
        self.path = Path(config.path).expanduser()

    @contextmanager
    def opened(self, *, structure: bool) -> Iterator[Reading | None]:
        name = self.config.name
        with opened_files(self.path, name, targets=False) as files:
            labels = {suffix: label(self.path, name, suffix) for suffix in files}

            def integers(suffix: str, columns: int | None = None) -> Iterator[Table]:
                return lines_of_numbers(files[suffix], labels[suffix], np.int64, columns)

            def table(suffix: str) -> Rows:
                if suffix.endswith("labels"):
                    return Rows(integers(suffix), np.zeros((0, 0), np.int64))
                numbers = lines_of_numbers(files[suffix], labels[suffix], np.float64)
                return Rows(_single(numbers, labels[suffix]), np.zeros((0, 0), np.float32))

            def tables(kind: str) -> dict[str, Rows]:
                wanted = [s for s in files if s.startswith(kind) and not structure]
                return {labels[suffix]: table(suffix) for suffix in wanted}

            arcs = (block - 1 for block in integers("A", 2))
            yield Reading(
                sizes=Rows(_run_lengths(integers("graph_indicator", 1)), np.zeros(0, np.int64)),
                arcs=Rows(arcs, np.zeros((0, 2), np.int64)),
                of_nodes=tables("node_"),
                of_arcs=tables("edge_"),
            )

    def dataset(self, piece: Piece) -> Dataset:
        def table(tables: dict[str, Table], suffix: str, rows: int) -> Table:
            dtype = np.int64 if suffix.endswith("labels") else np.float32
            name = label(self.path, self.config.name, suffix)
            return tables.get(name, np.zeros((rows, 0), dtype))

        nodes, arcs = int(piece.graph_ptr[-1]), len(piece.source)
        tables = TuTables(
            source=piece.source,
            target=piece.target,
            graph_ptr=piece.graph_ptr,
            classes=np.zeros(0, np.int64),
            targets=np.zeros(0, np.int64),
            node_labels=table(piece.of_nodes, "node_labels", nodes),
            node_attributes=table(piece.of_nodes, "node_attributes", nodes),
            edge_labels=table(piece.of_arcs, "edge_labels", arcs),
            edge_attributes=table(piece.of_arcs, "edge_attributes", arcs),
        )
        return dataset_from_tables(self.config, tables, self.vocabulary, targets=False)


def _single(blocks: Iterator[Table], name: str) -> Iterator[Table]:
    line = 0
    for block in blocks:
        yield as_single(block, name, line)
        line += len(block)


def _run_lengths(blocks: Iterator[Table]) -> Iterator[Table]:
    """How many lines each graph has; it is complete once the next one begins."""
    current, length = 0, 0
    for block in blocks:
        ids = block[:, 0]
        steps = np.diff(ids, prepend=current)
        if np.any((steps < 0) | (steps > 1)) or (current == 0 and ids[0] != 1):
            raise OutOfOrder
        begins = np.flatnonzero(steps)
        bounds = np.concatenate([begins, [len(ids)]])
        lengths = np.diff(bounds, prepend=0)  # the first belongs to the graph before the block
        complete = np.concatenate([[length + lengths[0]], lengths[1:-1]])
        if begins.size == 0:
            length += len(ids)
        else:
            yield complete if current else complete[1:]
            length = int(lengths[-1])
        current = int(ids[-1])
    if current:
        yield np.array([length])


def _json_lines(path: Path, nodes: int) -> Iterator[GraphBatch]:
    held: list[dict[str, Any]] = []
    size, first = 0, 0
    for graph, count in read_lines(path):
        if held and size + count > nodes:
            yield from_node_link(held, first)
            first += len(held)
            held, size = [], 0
        held.append(graph)
        size += count
    if not held:
        raise UserError(f"{path} has no graphs.")
    yield from_node_link(held, first)
