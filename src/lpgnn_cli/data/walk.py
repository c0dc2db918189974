"""Graphs out of tables that are read in step, some whole graphs at a time.

Nodes stand in the order of their graphs in every file that we read. Arcs need not, but nearly
always do; where they do not, or something else is wrong, tables have to be read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lpgnn_cli.data.rows import Rows, Table
from lpgnn_cli.errors import UserError

Ints = npt.NDArray[np.int64]
BLOCK = 1 << 16


class OutOfOrder(Exception):
    """An arc of other graphs than its place says."""


@dataclass(frozen=True, eq=False)
class Reading:
    """The tables of a file, at their beginnings; each is named as its user calls it."""

    sizes: Rows  # (G,) nodes of each graph
    arcs: Rows  # (A, 2) nodes, from 0
    of_nodes: Mapping[str, Rows]
    of_arcs: Mapping[str, Rows]


@dataclass(frozen=True, eq=False)
class Piece:
    """Some whole graphs; their nodes are numbered from 0."""

    graph_ptr: Ints
    source: Ints
    target: Ints
    of_nodes: dict[str, Table]
    of_arcs: dict[str, Table]


def walk(reading: Reading, nodes: int) -> Iterator[Piece]:
    """The graphs in order, in pieces of at most so many nodes or of one graph."""
    first = 0
    while len(held := reading.sizes.hold(nodes)):
        count = max(1, int(np.searchsorted(held.cumsum(), nodes, side="right")))
        sizes = reading.sizes.take(count)
        graph_ptr = np.concatenate([[0], sizes.cumsum()])
        last = first + int(graph_ptr[-1])
        arcs = _arcs_before(reading.arcs, last) - first
        _check_order(arcs, graph_ptr)
        yield Piece(
            graph_ptr=graph_ptr,
            source=np.ascontiguousarray(arcs[:, 0]),
            target=np.ascontiguousarray(arcs[:, 1]),
            of_nodes=_taken(reading.of_nodes, last - first, "node"),
            of_arcs=_taken(reading.of_arcs, len(arcs), "arc"),
        )
        first = last
    if len(reading.arcs.hold(1)):
        raise OutOfOrder
    for what, tables in (("node", reading.of_nodes), ("arc", reading.of_arcs)):
        for name, rows in tables.items():
            if len(rows.hold(1)):
                raise UserError(f"{name} has more rows than there are {what}s.")


def in_order(reading: Reading, nodes: int) -> bool:
    """Whether walking works, and there is a graph at all."""
    try:
        return sum(1 for _ in walk(reading, nodes)) > 0
    except OutOfOrder:
        return False


def _arcs_before(arcs: Rows, last: int) -> Ints:
    """The arcs up to the first one that has an end at `last` or beyond."""
    wanted = BLOCK
    while True:
        held: Ints = arcs.hold(wanted)
        beyond = np.flatnonzero((held >= last).any(axis=1))
        if beyond.size:
            return arcs.take(int(beyond[0]))
        if len(held) < wanted:
            return arcs.take(len(held))
        wanted = len(held) + BLOCK


def _check_order(arcs: Ints, graph_ptr: Ints) -> None:
    if arcs.size and (
        arcs.min() < 0
        or np.any(
            np.searchsorted(graph_ptr, arcs[:, 0], side="right")
            != np.searchsorted(graph_ptr, arcs[:, 1], side="right")
        )
    ):
        raise OutOfOrder


def _taken(tables: Mapping[str, Rows], count: int, what: str) -> dict[str, Table]:
    taken = {name: rows.take(count) for name, rows in tables.items()}
    for name, table in taken.items():
        if len(table) < count:
            raise UserError(f"{name} has fewer rows than there are {what}s.")
    return taken
