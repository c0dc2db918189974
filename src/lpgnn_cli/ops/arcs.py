"""The arcs of a disconnected union of graphs, sorted for the forward and the backward pass."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from lpgnn_cli.ops.neighbourhood import Neighbourhood

# Arcs and nodes of a block: few enough that a sum over them in single precision keeps its digits.
BLOCK = 16_384


@dataclass(frozen=True)
class Arcs:
    """Arc a carries a message from `source[a]` (u) to `target[a]` (v); arcs are sorted by target.

    The arcs into node v are `ptr[v]:ptr[v + 1]`. `by_source` lists the arcs sorted by source, and
    those out of node u are `by_source[source_ptr[u]:source_ptr[u + 1]]`: gathering along `source`
    then has a segment sum, not a scatter, as its backward pass.

    Lists of arcs are most of a large graph: those that follow from `source` and `ptr` are made, and
    kept, for whoever asks for them.

    There may be more nodes that arcs come from than nodes that they go to: see `into`.
    """

    source: Tensor
    ptr: Tensor
    source_ptr: Tensor

    @classmethod
    def from_sorted(cls, source: Tensor, target: Tensor, num_nodes: int) -> Arcs:
        """Arcs that are already sorted by target."""
        return cls(source, _pointers(target, num_nodes), _pointers(source, num_nodes))

    @classmethod
    def into(cls, source: Tensor, ptr: Tensor, sources: int) -> Arcs:
        """The arcs into the first of so many nodes, given by their pointer; into the others there
        are none."""
        by_source, target_by_source, source_ptr = _transposed(source, ptr, sources)
        arcs = cls(source, ptr, source_ptr)
        vars(arcs)["by_source"] = by_source
        vars(arcs)["target_by_source"] = target_by_source
        return arcs

    @property
    def num_nodes(self) -> int:
        """Of the nodes that arcs may go to."""
        return self.ptr.numel() - 1

    def own(self, rows: Tensor) -> Tensor:
        """Of rows of all nodes, those of the nodes that arcs may go to."""
        return rows if rows.shape[0] == self.num_nodes else rows[: self.num_nodes]

    @property
    def num_arcs(self) -> int:
        return self.source.numel()

    @cached_property
    def in_degree(self) -> Tensor:
        return self.ptr.diff()

    @cached_property
    def out_degree(self) -> Tensor:
        return self.source_ptr.diff()

    @cached_property
    def target(self) -> Tensor:
        return self.make_target()

    @cached_property
    def by_source(self) -> Tensor:
        return self.make_by_source()

    @cached_property
    def target_by_source(self) -> Tensor:
        """The targets of the arcs in the order of `by_source`."""
        return self.make_target().index_select(0, self.make_by_source())

    def make_target(self) -> Tensor:
        """`target`, for those who ask once."""
        known: Tensor | None = vars(self).get("target")
        if known is not None:
            return known
        return torch.repeat_interleave(self.ptr.diff(), output_size=self.num_arcs)

    def make_by_source(self) -> Tensor:
        """`by_source`, likewise."""
        known: Tensor | None = vars(self).get("by_source")
        return torch.argsort(self.source, stable=True) if known is None else known

    @cached_property
    def blocks_by_target(self) -> list[int]:
        """Nodes 0 to N in ranges of about as much work each, by the arcs into them: the bounds."""
        return _blocks(self.ptr)

    @cached_property
    def blocks_by_source(self) -> list[int]:
        """The same by the arcs out of them."""
        return _blocks(self.source_ptr)

    @cached_property
    def neighbourhoods(self) -> dict[int, Neighbourhood]:
        """Where `Neighbourhood.of` keeps what it worked out, by number of hops."""
        return {}

    def span(self, nodes: slice, arcs: slice) -> Arcs:
        """Nodes side by side and the arcs among them, where these are all there are."""
        pointers = slice(nodes.start, nodes.stop + 1)
        span = Arcs(
            source=self.source[arcs] - nodes.start,
            ptr=self.ptr[pointers] - arcs.start,
            source_ptr=self.source_ptr[pointers] - arcs.start,
        )
        vars(span)["by_source"] = self.by_source[arcs] - arcs.start
        vars(span)["target_by_source"] = self.target_by_source[arcs] - nodes.start
        vars(span)["in_degree"] = self.in_degree[nodes]
        vars(span)["out_degree"] = self.out_degree[nodes]
        return span

    def to(self, device: torch.device | str) -> Arcs:
        return Arcs(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


def _pointers(index: Tensor, size: int) -> Tensor:
    ptr = index.new_zeros(size + 1)
    torch.cumsum(torch.bincount(index, minlength=size), dim=0, out=ptr[1:])
    return ptr


def _transposed(source: Tensor, ptr: Tensor, sources: int) -> tuple[Tensor, Tensor, Tensor]:
    """The arcs sorted by source, the targets in this order, and the pointer of the sources."""
    if not source.is_cpu:
        arcs = Arcs(source, ptr, _pointers(source, sources))
        return arcs.by_source, arcs.target_by_source, arcs.source_ptr
    # Here, as it takes its time to import. Transposing counts where sorting compares: a tenth of
    # the time.
    from scipy.sparse import csr_array

    order = np.arange(source.numel(), dtype=np.int64)
    by_target = (order, source.numpy(), ptr.numpy())
    turned = csr_array(by_target, shape=(ptr.numel() - 1, sources)).tocsc()
    parts = (turned.data, turned.indices, turned.indptr)
    by_source, target_by_source, source_ptr = (torch.from_numpy(part).long() for part in parts)
    return by_source, target_by_source, source_ptr


def _blocks(ptr: Tensor) -> list[int]:
    nodes = ptr.numel() - 1
    total = int(ptr[-1]) + nodes
    pieces = max(1, total // BLOCK)
    if pieces == 1:
        return [0, nodes]
    work = ptr + torch.arange(ptr.numel(), device=ptr.device)
    shares = torch.arange(1, pieces, device=ptr.device) * total // pieces
    inner: list[int] = torch.unique(torch.searchsorted(work, shares)).tolist()
    return [0, *(bound for bound in inner if 0 < bound < nodes), nodes]
