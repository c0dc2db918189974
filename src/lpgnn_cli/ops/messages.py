"""Moving rows between the nodes and the arcs of a graph union, in segment sums both ways.

Shapes: N nodes, A arcs, H columns.
"""

from __future__ import annotations

from torch import Tensor

from lpgnn_cli.ops import kernels
from lpgnn_cli.ops.arcs import Arcs
from lpgnn_cli.ops.linear import linear
from lpgnn_cli.ops.segments import segment_sum, spread_segments


def gather_source(x_NH: Tensor, arcs: Arcs) -> Tensor:
    """(A, H): every arc gets the row of the node it comes from."""
    return linear(
        x_NH,
        lambda x: x.index_select(0, arcs.source),
        lambda gradient: kernels.sum_rows(gradient, arcs.by_source, arcs.source_ptr),
    )


def gather_target(x_NH: Tensor, arcs: Arcs) -> Tensor:
    """(A, H): every arc gets the row of the node it goes to."""
    return spread_segments(x_NH, arcs.ptr, arcs.target)


def sum_incoming(values_AH: Tensor, arcs: Arcs) -> Tensor:
    """(N, H): every node gets the sum over the arcs that end in it."""
    return segment_sum(values_AH, arcs.ptr, arcs.target)


def sum_sources(x_NH: Tensor, arcs: Arcs) -> Tensor:
    """(N, H): every node gets the sum over the nodes that it sends to: the adjoint of
    `sum_neighbours`."""
    return linear(
        x_NH,
        lambda x: kernels.sum_rows(x, arcs.target_by_source, arcs.source_ptr),
        lambda gradient: kernels.sum_rows(gradient, arcs.source, arcs.ptr),
    )


def sum_neighbours(x_NH: Tensor, arcs: Arcs) -> Tensor:
    """(N, H): `sum_incoming(gather_source(x))`, with nothing the size of the arcs in between."""
    return linear(
        x_NH,
        lambda x: kernels.sum_rows(x, arcs.source, arcs.ptr),
        lambda gradient: kernels.sum_rows(gradient, arcs.target_by_source, arcs.source_ptr),
    )
