"""The arcs of a disconnected union of graphs, sorted for the forward and the backward pass."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from lpgnn_cli.ops.neighbourhood import Neighbourhood


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
    def neighbourhoods(self) -> dict[int, Neighbourhood]:
        """Where `Neighbourhood.of` keeps what it worked out, by number of hops."""
        return {}

    def to(self, device: torch.device | str) -> Arcs:
        return Arcs(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


def _pointers(index: Tensor, size: int) -> Tensor:
    ptr = index.new_zeros(size + 1)
    torch.cumsum(torch.bincount(index, minlength=size), dim=0, out=ptr[1:])
    return ptr
