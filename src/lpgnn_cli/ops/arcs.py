"""The arcs of a disconnected union of graphs, sorted for the forward and the backward pass."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

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
    """

    source: Tensor
    target: Tensor
    ptr: Tensor
    by_source: Tensor
    source_ptr: Tensor

    @classmethod
    def from_sorted(cls, source: Tensor, target: Tensor, num_nodes: int) -> Arcs:
        """Arcs that are already sorted by target."""
        by_source = torch.argsort(source, stable=True)
        return cls(
            source=source,
            target=target,
            ptr=_pointers(target, num_nodes),
            by_source=by_source,
            source_ptr=_pointers(source, num_nodes),
        )

    @property
    def num_nodes(self) -> int:
        return self.ptr.numel() - 1

    @property
    def num_arcs(self) -> int:
        return self.source.numel()

    @cached_property
    def in_degree(self) -> Tensor:
        return self.ptr.diff()

    @cached_property
    def target_by_source(self) -> Tensor:
        """The targets of the arcs in the order of `by_source`."""
        return self.target.index_select(0, self.by_source)

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

    def to(self, device: torch.device | str) -> Arcs:
        return Arcs(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


def _pointers(index: Tensor, size: int) -> Tensor:
    ptr = index.new_zeros(size + 1)
    torch.cumsum(torch.bincount(index, minlength=size), dim=0, out=ptr[1:])
    return ptr


def _blocks(ptr: Tensor) -> list[int]:
    work = ptr + torch.arange(ptr.numel(), device=ptr.device)
    total = int(work[-1])
    pieces = max(1, total // BLOCK)
    shares = torch.arange(1, pieces, device=ptr.device) * total // pieces
    inner: list[int] = torch.unique(torch.searchsorted(work, shares)).tolist()
    return [0, *(bound for bound in inner if 0 < bound < ptr.numel() - 1), ptr.numel() - 1]
