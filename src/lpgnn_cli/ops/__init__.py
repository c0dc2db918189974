"""Segment operations over the arcs of a graph union."""

from lpgnn_cli.ops.activated import arc_kernel, sum_activated
from lpgnn_cli.ops.arcs import Arcs
from lpgnn_cli.ops.distinct import DistinctRows
from lpgnn_cli.ops.kernels import backend
from lpgnn_cli.ops.messages import (
    gather_source,
    gather_target,
    sum_incoming,
    sum_neighbours,
    sum_sources,
)
from lpgnn_cli.ops.neighbourhood import Neighbourhood
from lpgnn_cli.ops.products import add_products
from lpgnn_cli.ops.segments import segment_max, segment_mean, segment_sum
from lpgnn_cli.ops.sparse import SparseRows

__all__ = [
    "Arcs",
    "DistinctRows",
    "Neighbourhood",
    "SparseRows",
    "add_products",
    "arc_kernel",
    "backend",
    "gather_source",
    "gather_target",
    "segment_max",
    "segment_mean",
    "segment_sum",
    "sum_activated",
    "sum_incoming",
    "sum_neighbours",
    "sum_sources",
]
