"""The nodes within several hops of every node, and the median over them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lpgnn_cli.ops.arcs import Arcs


@dataclass(frozen=True)
class Neighbourhood:
    """Node v sees `member[ptr[v]:ptr[v + 1]]`: the nodes with a path of few hops to v, and v."""

    member: Tensor
    node: Tensor
    ptr: Tensor

    @classmethod
    def of(cls, arcs: Arcs, hops: int) -> Neighbourhood:
        """Worked out once for every graph union, and kept with its arcs."""
        known = arcs.neighbourhoods
        if hops not in known:
            nearer = cls.of(arcs, hops - 1) if hops > 1 else cls._itself(arcs)
            known[hops] = nearer._one_hop_more(arcs)
        return known[hops]

    @classmethod
    def _itself(cls, arcs: Arcs) -> Neighbourhood:
        nodes = torch.arange(arcs.num_nodes + 1, device=arcs.ptr.device)
        return cls(member=nodes[:-1], node=nodes[:-1], ptr=nodes)

    def _one_hop_more(self, arcs: Arcs) -> Neighbourhood:
        # Every member brings the sources of the arcs into it: its slice of `arcs.source`.
        count = arcs.in_degree.index_select(0, self.member)
        owner = torch.repeat_interleave(count)
        within = torch.arange(owner.numel(), device=owner.device) - (count.cumsum(0) - count)[owner]
        source = arcs.source[arcs.ptr[self.member[owner]] + within]
        size = arcs.num_nodes
        pairs = torch.cat([self.node * size + self.member, self.node[owner] * size + source])
        pairs = torch.unique(pairs)
        node = pairs // size
        ptr = torch.searchsorted(node, torch.arange(size + 1, device=node.device))
        return Neighbourhood(member=pairs % size, node=node, ptr=ptr)

    def median(self, values_NH: Tensor) -> Tensor:
        """(N, H): the lower median, column by column; the gradient goes to the median element."""
        with torch.no_grad():
            seen_PH = values_NH.index_select(0, self.member)
            by_value = seen_PH.argsort(dim=0, stable=True)
            by_node = self.node[by_value].argsort(dim=0, stable=True)
            order_PH = by_value.gather(0, by_node)
            middle_N = self.ptr[:-1] + (self.ptr.diff() - 1) // 2
            median_NH = self.member[order_PH.index_select(0, middle_N)]
        return values_NH.gather(0, median_NH)
