"""A large graph in blocks of nodes, each with all that a transition needs to know of the others.

States are stored, so a block needs its nodes, the arcs into them and the nodes that these come
from: one hop, and nothing of it is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.ops import DistinctRows
from lpgnn_cli.ops.arcs import Arcs

# Numbers up to which a table of the distinct features of a whole graph is worth its memory.
MOST_IN_A_TABLE = 100_000_000


@dataclass(frozen=True, eq=False)
class Block(GraphBatch):
    """The nodes `first:stop` of a graph, and after them those that have an arc to one of them.

    Features are those of all of them, arcs and targets those of the nodes of the block alone.
    Whatever is a matter of the whole graph, such as degrees, is looked up there.
    """

    whole: GraphBatch
    first: int
    # Which nodes of the whole graph come after those of the block.
    around: Tensor

    @classmethod
    def cut(cls, whole: GraphBatch, first: int, stop: int) -> Block:
        ptr = whole.arcs.ptr[first : stop + 1]
        arcs = slice(int(ptr[0]), int(ptr[-1]))
        source, around = _renumbered(whole.arcs.source[arcs], first, stop)
        block = cls(
            features=torch.cat([whole.features[first:stop], whole.features[around]]),
            arcs=Arcs.into(source, ptr - ptr[0], stop - first + around.numel()),
            arc_in=whole.arc_in[arcs],
            arc_out=whole.arc_out[arcs],
            graph_ptr=whole.graph_ptr.new_tensor([0, stop - first + around.numel()]),
            targets=whole.targets[first:stop],
            target_level=whole.target_level,
            num_classes=whole.num_classes,
            whole=whole,
            first=first,
            around=around,
        )
        vars(block.arcs)["out_degree"] = block.rows_of(whole.arcs.out_degree)
        labels = whole.distinct_arc_labels
        vars(block)["distinct_arc_labels"] = labels and labels.take(arcs)
        return block

    @property
    def stop(self) -> int:
        return self.first + self.arcs.num_nodes

    @property
    def nodes(self) -> slice:
        """Of the block itself, in the whole graph."""
        return slice(self.first, self.stop)

    @property
    def share(self) -> float:
        """Of the nodes of the whole graph."""
        return self.arcs.num_nodes / self.whole.num_nodes

    def rows_of(self, values: Tensor) -> Tensor:
        """Of one row per node of the whole graph, those of the block and of what is around it."""
        return torch.cat([values[self.nodes], values[self.around]])

    def add_to(self, total: Tensor, values: Tensor) -> None:
        """Add one row for each of these nodes to those of the whole graph."""
        few = self.arcs.num_nodes
        total[self.nodes] += values[:few]
        total.index_add_(0, self.around, values[few:])

    @cached_property
    def distinct_features(self) -> DistinctRows | None:
        if self.whole.features.numel() > MOST_IN_A_TABLE:
            return None
        found = self.whole.distinct_features
        if found is None:
            return None
        return DistinctRows(found.rows, self.rows_of(found.kind))

    @cached_property
    def alike_arcs(self) -> DistinctRows | None:
        # Eight bytes for every arc of the whole graph, and it may not fit in memory as it is.
        return None

    @cached_property
    def spectral_norm(self) -> Tensor:
        raise AssertionError("a block is no graph")

    @cached_property
    def inverse_norm(self) -> Tensor:
        return self.rows_of(self.whole.inverse_norm)


@dataclass(frozen=True)
class Blocks:
    """A graph, cut into ranges of so many nodes: what is read and written lies side by side."""

    whole: GraphBatch
    size: int

    @property
    def starts(self) -> range:
        return range(0, self.whole.num_nodes, self.size)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Block]:
        return map(self.at, self.starts)

    def shuffled(self, order: torch.Generator | None) -> Iterator[Block]:
        """All blocks in a random order."""
        for number in torch.randperm(len(self), generator=order).tolist():
            yield self.at(self.starts[number])

    def at(self, first: int) -> Block:
        return Block.cut(self.whole, first, min(first + self.size, self.whole.num_nodes))


def row_ranges(rows: int, size: int) -> Iterator[slice]:
    """So many rows in pieces of a size, the last one maybe shorter."""
    for first in range(0, rows, size):
        yield slice(first, min(first + size, rows))


def _renumbered(source: Tensor, first: int, stop: int) -> tuple[Tensor, Tensor]:
    """Where arcs come from, numbered from `first`, with what lies outside of first:stop after it;
    and which nodes those are, in their order."""
    local = source - first
    is_outside = (local < 0) | (local >= stop - first)
    outside = source[is_outside]
    if outside.numel() == 0:
        return local, outside
    # Marks in the range that they lie in: sorting them would take as long as an epoch.
    low, high = int(outside.min()), int(outside.max())
    marks = torch.zeros(high - low + 1, dtype=torch.bool, device=source.device)
    marks[outside - low] = True
    around = marks.nonzero().squeeze(1)
    place = around.new_empty(len(marks))
    place[around] = torch.arange(stop - first, stop - first + len(around), device=source.device)
    local[is_outside] = place[outside - low]
    return local, around + low
