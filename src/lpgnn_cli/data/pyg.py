"""A GraphBatch from PyTorch Geometric graphs: every dataset of that library is one call away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch, TargetLevel


def from_pyg(graphs: Iterable[Any]) -> GraphBatch:
    """The union of `torch_geometric.data.Data` objects (or of a dataset of them).

    `x` are the node features (none where it is missing), `edge_attr` the arc labels and `y` the
    classes: one per graph, or one per node. PyTorch Geometric itself is not imported here.
    """
    items = list(graphs)
    if not items:
        raise ValueError("from_pyg needs at least one graph")
    sizes = torch.tensor([int(g.num_nodes) for g in items])
    graph_ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    arcs = torch.cat(
        [g.edge_index + start for g, start in zip(items, graph_ptr[:-1].tolist(), strict=True)],
        dim=1,
    )
    targets = torch.cat([_targets(g) for g in items])
    level = _level(items, targets)
    return GraphBatch.from_arcs(
        features=torch.cat([_matrix(g.x, int(g.num_nodes)) for g in items]),
        source=arcs[0],
        target=arcs[1],
        arc_labels=torch.cat([_matrix(g.edge_attr, g.edge_index.shape[1]) for g in items]),
        graph_ptr=graph_ptr,
        targets=targets,
        target_level=level,
        num_classes=int(targets.max()) + 1,
    )


def _matrix(values: Tensor | None, rows: int) -> Tensor:
    if values is None:
        return torch.zeros(rows, 0)
    return values.reshape(rows, -1).float()


def _targets(graph: Any) -> Tensor:
    y: Tensor | None = graph.y
    if y is None:
        raise ValueError("from_pyg needs classes: a graph has no y")
    if y.is_floating_point() or y.numel() == 0 or int(y.min()) < 0:
        raise ValueError("from_pyg needs classes from 0 in y, not numbers to regress on")
    return y.reshape(-1).long()


def _level(graphs: list[Any], targets: Tensor) -> TargetLevel:
    if all(g.y.numel() == g.num_nodes for g in graphs) and targets.numel() > len(graphs):
        return "node"
    if targets.numel() == len(graphs):
        return "graph"
    raise ValueError("from_pyg needs one class per graph or one per node")
