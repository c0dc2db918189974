"""One graph with classes of nodes, in a file of plain arrays, as node-level benchmarks publish it.

node_features  (N, F)  one row of numbers per node
node_labels    (N,)    one class per node, from 0; or numbers; or rows of 0 and 1, labels
edges          (E, 2)  two nodes each
train_masks, val_masks, test_masks  (S, N)  optional: S splits of the nodes, true or false
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from lpgnn_cli.config.dataset import NodesConfig
from lpgnn_cli.data.asked import without_targets
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.data.datasets.graphs import encode, with_known_classes
from lpgnn_cli.data.masks import Masks
from lpgnn_cli.data.node_files import PUBLISHED, check_published, find_file
from lpgnn_cli.data.npz import Arrays, as_matrix, read_npz
from lpgnn_cli.data.targets import as_targets
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import CLASSES, task_of

TARGETS = "node_labels"
REQUIRED = ("node_features", TARGETS, "edges")


@dataset("nodes", NodesConfig)
def load_nodes(config: NodesConfig, request: Request) -> Dataset:
    """The dataset of a file, with the classes of a trained network where one is given."""
    path = find_file(config, request.data_root)
    batch, masks = read_nodes(path, directed=config.directed, targets=request.targets)
    if config.path is None and not config.directed and request.targets:
        check_published(config.name, batch, path)
    batch = with_known_classes(batch, request.vocabulary, str(path))
    metric = PUBLISHED[config.name].metric if config.name in PUBLISHED else ""
    return encode(config, batch, request.vocabulary, masks, metric)


def read_nodes(
    path: Path, *, directed: bool, targets: bool = True
) -> tuple[GraphBatch, Masks | None]:
    """The graph of a file and its masks; all of it that counts is checked."""
    arrays = read_npz(path)
    if not targets:
        arrays = {name: array for name, array in arrays.items() if name != TARGETS}
    required = [name for name in REQUIRED if targets or name != TARGETS]
    missing = [name for name in required if name not in arrays]
    if missing:
        raise UserError(
            f"{path} lacks {' and '.join(missing)}: a file of nodes has {', '.join(required)}."
        )
    try:
        batch = _batch(arrays, directed)
        return batch, Masks.from_arrays(arrays, batch.num_nodes)
    except (ValueError, TypeError) as error:
        raise UserError(f"{path}: {error}.") from error


def _batch(arrays: Arrays, directed: bool) -> GraphBatch:
    features = as_matrix(arrays["node_features"], "node_features")
    nodes = len(features)
    _require(nodes > 0, "node_features has no row, so there is no node")
    arcs = _arcs(arrays["edges"], nodes, directed)
    return GraphBatch.from_arcs(
        features=torch.from_numpy(features),
        source=torch.from_numpy(arcs[:, 0].copy()),
        target=torch.from_numpy(arcs[:, 1].copy()),
        graph_ptr=torch.tensor([0, nodes]),
        **(_targets(arrays[TARGETS], nodes) if TARGETS in arrays else without_targets(1)),
    )


def _targets(labels: Any, nodes: int) -> dict[str, Any]:
    _require(
        len(labels) == nodes if labels.ndim else False,
        f"node_labels has the shape {labels.shape}, but there are {nodes} nodes",
    )
    targets, num_classes = as_targets(labels, TARGETS)
    _require(
        num_classes > 1 or task_of(targets) != CLASSES,
        "node_labels has one class only: there is nothing to learn",
    )
    return {"targets": targets, "target_level": "node", "num_classes": num_classes}


def _arcs(edges: Any, nodes: int, directed: bool) -> Any:
    """Each arc once; both directions of every edge unless they are told apart."""
    _require(
        edges.ndim == 2 and edges.shape[1] == 2,
        f"edges has the shape {edges.shape}: it must have one row of two nodes per edge",
    )
    _require(edges.dtype.kind in "iu", f"edges must be whole numbers, not {edges.dtype}")
    outside = (edges < 0) | (edges >= nodes)
    _require(
        not bool(outside.any()),
        f"edges has the node {edges[outside][0] if outside.any() else ''}, but they are numbered "
        f"from 0 to {nodes - 1}",
    )
    arcs = edges.astype(np.int64)
    return np.unique(arcs if directed else np.concatenate([arcs, arcs[:, ::-1]]), axis=0)


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(sentence)
