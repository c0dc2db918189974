"""The graph shift operator S = D_in^(-1/2) A D_out^(-1/2) of `gcn`, `selection`, `diffusion`."""

from __future__ import annotations

import torch
from torch import Tensor

from lpgnn_cli.ops import Arcs, gather_source, sum_incoming, sum_neighbours


class GraphShift:
    """S applied to node rows, or its entries c_uv summed over arc rows; S is never formed.

    In an undirected graph D_in = D_out and c_uv = 1 / sqrt(d_u d_v). With self-loops A + I stands
    for A, and the degrees are those of A + I.
    """

    def __init__(self, arcs: Arcs, dtype: torch.dtype, self_loops: bool = False) -> None:
        self._arcs = arcs
        self._self_loops = self_loops
        self._in_N1 = _inverse_root(arcs.in_degree + int(self_loops), dtype)
        self._out_N1 = _inverse_root(arcs.out_degree + int(self_loops), dtype)

    def __call__(self, values_NH: Tensor) -> Tensor:
        sent_NH = self._out_N1 * values_NH
        summed_NH = sum_neighbours(sent_NH, self._arcs)
        return self._in_N1 * (
            summed_NH + self._arcs.own(sent_NH) if self._self_loops else summed_NH
        )

    def of_arcs(self, values_AH: Tensor) -> Tensor:
        """(N, H): Σ_u c_uv values_(u,v)"""
        weighted_AH = gather_source(self._out_N1, self._arcs) * values_AH
        return self._in_N1 * sum_incoming(weighted_AH, self._arcs)


def _inverse_root(degree_N: Tensor, dtype: torch.dtype) -> Tensor:
    # A degree of 0 multiplies nothing but empty sums.
    return degree_N.clamp(min=1).to(dtype).rsqrt().unsqueeze(1)
