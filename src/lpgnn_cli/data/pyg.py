"""A GraphBatch from PyTorch Geometric graphs: every dataset of that library is one call away."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.data.asked import without_targets
from lpgnn_cli.data.batch import GraphBatch, TargetLevel
from lpgnn_cli.data.masks import PARTS, Masks
from lpgnn_cli.data.targets import as_targets
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import count


def from_pyg(graphs: Any) -> GraphBatch:
    """The union of `torch_geometric.data.Data` objects: one, several, or a dataset of them.

    `x` are the node features (none where it is missing), `edge_attr` the arc labels and `y` what is
    to be learnt, of each graph or of each node: one class, a row of 0 and 1 for several labels, or
    numbers. PyTorch Geometric itself is not imported here.
    """
    items = _graphs(graphs)
    targets, level, num_classes = _targets(items)
    return _union(items, targets=targets, target_level=level, num_classes=num_classes)


def masks_of(graphs: Any) -> Masks | None:
    """`train_mask`, `val_mask` and `test_mask` of the nodes, where every graph has them.

    One column per split, or one split where they are vectors.
    """
    items = _graphs(graphs)
    found: dict[str, Any] = {}
    for part in PARTS:
        columns = [_mask(g, f"{part}_mask") for g in items if f"{part}_mask" in g]
        if len(columns) < len(items):
            continue
        if len({c.shape[1] for c in columns}) > 1:
            raise UserError(f"the graphs have different numbers of splits in {part}_mask.")
        found[f"{part}_masks"] = torch.cat(columns).T.numpy()
    try:
        return Masks.from_arrays(found, sum(int(g.num_nodes) for g in items))
    except ValueError as error:
        raise UserError(f"the masks of the graphs cannot be used: {error}.") from error


def from_pyg_without_targets(graphs: Any) -> GraphBatch:
    """Graphs whose classes nobody knows, or asks for: all of them are class 0."""
    items = _graphs(graphs)
    return _union(items, **without_targets(len(items)))


def _graphs(given: Any) -> list[Any]:
    data = sys.modules.get("torch_geometric.data")
    if data is not None and isinstance(given, data.Batch):
        given = given.to_data_list()
    elif data is not None and isinstance(given, data.Data | data.HeteroData):
        given = [given]  # iterating over it gives attributes, or an error
    if not isinstance(given, Iterable):
        raise UserError(f"graphs must be PyTorch Geometric graphs, not a {type(given).__name__}.")
    items = list(given)
    if not items:
        raise UserError("there must be at least one graph.")
    for item in items:
        if not hasattr(item, "num_nodes") or not hasattr(item, "edge_index"):
            name = type(item).__name__
            raise UserError(f"graphs must be PyTorch Geometric graphs (Data), not {name}.")
    return items


def _union(items: Sequence[Any], **targets: Any) -> GraphBatch:
    sizes = torch.tensor([int(g.num_nodes) for g in items])
    graph_ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    arcs = [_arcs(g) for g in items]
    shifted = [a + start for a, start in zip(arcs, graph_ptr[:-1].tolist(), strict=True)]
    source, target = torch.cat(shifted, dim=1)
    arc_labels = [getattr(g, "edge_attr", None) for g in items]
    try:
        return GraphBatch.from_arcs(
            features=_rows([g.x for g in items], sizes.tolist(), "x"),
            source=source,
            target=target,
            arc_labels=_rows(arc_labels, [a.shape[1] for a in arcs], "edge_attr"),
            graph_ptr=graph_ptr,
            **targets,
        )
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"the graphs cannot be used: {error}.") from error


def _tensor(value: Any, name: str) -> Tensor:
    """Numbers, also those of numpy and of Python, without what training may have tied to them."""
    try:
        return torch.as_tensor(value).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(
            f"{name} must be a tensor of numbers, not a {type(value).__name__}."
        ) from error


def _arcs(graph: Any) -> Tensor:
    if graph.edge_index is None:
        if getattr(graph, "adj_t", None) is not None:
            raise UserError(
                "a graph has adj_t and no edge_index: leave out the transform ToSparseTensor, or "
                "give it remove_edge_index=False."
            )
        return torch.zeros(2, 0, dtype=torch.int64)
    arcs, nodes = _tensor(graph.edge_index, "edge_index"), int(graph.num_nodes)
    if arcs.ndim != 2 or len(arcs) != 2 or arcs.is_floating_point() or arcs.is_complex():
        raise UserError(
            "edge_index must be two rows of whole numbers, the source and the target of each arc, "
            f"and a graph has one of the shape {list(arcs.shape)} and the type {arcs.dtype}."
        )
    if arcs.numel() and not 0 <= int(arcs.min()) <= int(arcs.max()) < nodes:
        raise UserError(
            f"edge_index must name nodes 0 to {nodes - 1} of a graph with {count(nodes, 'node')}, "
            f"and names nodes {int(arcs.min())} to {int(arcs.max())}."
        )
    return arcs.long()


def _rows(tables: Sequence[Any], rows: Sequence[int], name: str) -> Tensor:
    """One row per node or arc of all graphs; no columns where there is nothing."""
    matrices = [
        torch.zeros(n, 0) if t is None or not n else _matrix(t, n, name)
        for t, n in zip(tables, rows, strict=True)
    ]
    # What has no rows has no columns that could disagree.
    widths = {m.shape[1] for m in matrices if m.shape[0]}
    if len(widths) > 1:
        found = " and ".join(map(str, sorted(widths)))
        raise UserError(f"the graphs have different numbers of columns in {name}: {found}.")
    width = max(widths, default=0)
    return torch.cat([m if m.shape[0] else torch.zeros(0, width) for m in matrices])


def _matrix(table: Any, rows: int, name: str) -> Tensor:
    matrix = _tensor(table, name)
    if matrix.ndim == 0 or len(matrix) != rows:
        what = "node" if name == "x" else "arc"
        raise UserError(
            f"{name} must have one row per {what}: a graph with {count(rows, what)} has one of the "
            f"shape {list(matrix.shape)}."
        )
    return matrix.reshape(rows, -1).float()


def _mask(graph: Any, name: str) -> Tensor:
    mask, nodes = _tensor(graph[name], name), int(graph.num_nodes)
    if mask.ndim == 0 or len(mask) != nodes:
        raise UserError(
            f"{name} must have one row per node: a graph with {count(nodes, 'node')} has one of "
            f"the shape {list(mask.shape)}."
        )
    return mask.reshape(nodes, -1)


def _targets(items: Sequence[Any]) -> tuple[Tensor, TargetLevel, int]:
    """`y` of all graphs, whether it is of nodes, and how many classes or columns it has."""
    if any(g.y is None for g in items):
        raise UserError("y must hold what is to be learnt, and a graph has no y.")
    own = [_tensor(g.y, "y") for g in items]
    sizes = [int(g.num_nodes) for g in items]
    of_nodes = all(y.ndim > 0 and len(y) == n for y, n in zip(own, sizes, strict=True))
    level: TargetLevel = "node" if of_nodes and sum(sizes) > len(items) else "graph"
    if level == "graph":
        # A graph has one class, or a row: (1, columns), as a batch of one.
        own = [y.reshape(1, -1) if y.ndim == 2 else y.reshape(-1) for y in own]
    if level == "graph" and any(len(y) != 1 for y in own):
        raise UserError("y must be one value, or one row of them, per graph or per node.")
    if len({y.shape[1:] for y in own}) > 1:
        raise UserError("the graphs have different numbers of columns in y.")
    try:
        targets, num_classes = as_targets(torch.cat(own).numpy(), "y")
    except ValueError as error:
        raise UserError(f"{error}.") from error
    return targets, level, num_classes
