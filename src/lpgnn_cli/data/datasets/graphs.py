"""Graphs in a file of plain arrays: what Python hands over, and what anyone can write with numpy.

source, target  (A,)          arc a goes from node source[a] to node target[a]
graph_ptr       (G + 1,)      graph g has the nodes graph_ptr[g] to graph_ptr[g + 1] - 1
targets         (G,) or (N,)  one class per graph or per node, from 0; or numbers; or rows of
                              them; or rows of 0 and 1, several labels each
features        (N, F)        optional: one row of numbers per node
arc_labels      (A, D)        optional: one row of numbers per arc
num_classes     ()            optional: the largest class plus 1
target_level    ()            optional: graph or node, where the number of targets leaves it open
train_masks, val_masks, test_masks  (S, N)  optional: S splits of the nodes
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lpgnn_cli.atomic import replacing
from lpgnn_cli.config.dataset import DatasetConfig, GraphsConfig, NodesConfig
from lpgnn_cli.data.asked import without_targets
from lpgnn_cli.data.batch import GraphBatch, TargetLevel
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.data.features import (
    NodeFeatures,
    NodeTables,
    choose_features,
    continuous_columns,
    normalised_rows,
)
from lpgnn_cli.data.masks import Masks
from lpgnn_cli.data.node_link import JSON_LINES
from lpgnn_cli.data.npz import Arrays, as_matrix, read_npz, require
from lpgnn_cli.data.targets import MAX_CLASSES, as_targets
from lpgnn_cli.data.vocabulary import Vocabulary
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import CLASSES, task_of

TARGETS = "targets"
REQUIRED = ("source", "target", "graph_ptr")
# The columns that the graphs bring along, rather than some that are made of their structure.
OWN = "auto"


def save_graphs(batch: GraphBatch, path: Path, masks: Masks | None = None) -> None:
    """Write graphs to a file; a reader sees all of it or nothing."""
    arrays: Arrays = {
        "features": batch.features,
        "source": batch.arcs.source,
        "target": batch.arcs.target,
        "arc_labels": batch.arc_in,
        "graph_ptr": batch.graph_ptr,
        "targets": batch.targets,
    }
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in arrays.items()}
    arrays |= {"num_classes": batch.num_classes, "target_level": batch.target_level}
    arrays |= {} if masks is None else masks.to_arrays()
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_graphs(path: Path, *, targets: bool = True) -> tuple[GraphBatch, Masks | None]:
    """The graphs of a file; nothing in it is executed, and all that counts is checked."""
    arrays = read_npz(path)
    if not targets:
        arrays = {name: array for name, array in arrays.items() if name != TARGETS}
    wanted = (*REQUIRED, TARGETS) if targets else REQUIRED
    bare = all(name in arrays for name in REQUIRED)
    hint = ": only `lpgnn predict` reads graphs without targets" if bare else ""
    require(arrays, wanted, path, hint)
    try:
        batch = _batch(arrays)
        return batch, Masks.from_arrays(arrays, batch.num_nodes)
    except (ValueError, TypeError, IndexError, RuntimeError) as error:
        raise UserError(f"{path}: {error}.") from error


@dataset("graphs", GraphsConfig)
def load_graphs(config: GraphsConfig, request: Request) -> Dataset:
    """The dataset of a file, with the classes and columns of a trained network where one is given.

    Targets are indices of classes as they stand, so unseen graphs need not have all of them.
    """
    if Path(config.path).suffix == JSON_LINES:
        raise UserError(
            f"{config.path}: JSON lines have no targets; only `lpgnn predict` reads them."
        )
    batch, masks = read_graphs(Path(config.path), targets=request.targets)
    if request.targets and request.vocabulary is None and batch.task == CLASSES:
        _check_classes(batch.targets, config.path)
    batch = with_known_classes(batch, request.vocabulary, config.path)
    return encode(config, batch, request.vocabulary, masks)


def _check_classes(targets: Tensor, origin: str) -> None:
    """Graphs that are only scored may all have the same."""
    alone = int(targets.min())
    if alone == int(targets.max()):
        raise UserError(
            f"{origin}: all targets are of class {alone}, so there is nothing to learn."
        )


def with_known_classes(batch: GraphBatch, vocabulary: Vocabulary | None, origin: str) -> GraphBatch:
    """With as many classes as the trained network knows, where there is one."""
    if vocabulary is None or not vocabulary.classes or batch.task != CLASSES:
        return batch
    known, largest = len(vocabulary.classes), int(batch.targets.max())
    if largest >= known:
        raise UserError(
            f"{origin} has the class {largest}, and the network was trained with the classes 0 to "
            f"{known - 1}."
        )
    return batch.with_targets(batch.targets, batch.target_level, known)


def encode(
    config: DatasetConfig,
    batch: GraphBatch,
    vocabulary: Vocabulary | None,
    masks: Masks | None = None,
    metric: str = "",
) -> Dataset:
    """Graphs with the features of a dataset's config, eigenvectors included.

    The columns that the graphs bring along are taken as they are, unless the config makes others of
    their structure; files of graphs or nodes may do that, other datasets have columns of their own.
    """
    in_a_file = isinstance(config, GraphsConfig | NodesConfig)
    choice = config.features if in_a_file else OWN
    tables = NodeTables(
        labels=torch.zeros(batch.num_nodes, 0, dtype=torch.int64),
        attributes=batch.features,
        degrees=batch.arcs.in_degree,
    )
    known = vocabulary if vocabulary is not None and vocabulary.degrees else None
    known = known or Vocabulary.of(
        node_labels=tables.labels,
        arc_labels=torch.zeros(0, 0),
        degrees=tables.degrees,
        classes=range(batch.num_classes),
    )
    if choice == OWN and isinstance(config, NodesConfig) and config.normalise_rows:
        features = normalised_rows(batch.features)
    elif choice == OWN:
        features = NodeFeatures(batch.features, continuous_columns(batch.features))
    else:
        features = choose_features(choice, config.name, tables, known)
    return Dataset.build(
        config.name,
        batch,
        features,
        positional=config.positional,
        vocabulary=known,
        masks=masks,
        metric=metric,
    )


def _batch(arrays: Arrays) -> GraphBatch:
    graph_ptr = _integers(arrays, "graph_ptr")
    num_graphs = graph_ptr.numel() - 1
    if num_graphs < 1:
        raise ValueError("there is no graph in it")
    known = TARGETS in arrays
    source = _integers(arrays, "source")
    labels = arrays.get("arc_labels")
    nodes = int(graph_ptr[-1])
    if nodes < 0:
        raise ValueError(f"graph_ptr ends with {nodes}: no graph can have {nodes} nodes")
    features = arrays.get("features", np.zeros((nodes, 0), np.float32))
    return GraphBatch.from_arcs(
        features=torch.from_numpy(as_matrix(features, "features")),
        source=source,
        target=_integers(arrays, "target"),
        arc_labels=None if labels is None else torch.from_numpy(as_matrix(labels, "arc_labels")),
        graph_ptr=graph_ptr,
        **(_targets(arrays, num_graphs) if known else without_targets(num_graphs)),
    )


def _targets(arrays: Arrays, num_graphs: int) -> dict[str, Any]:
    targets, num_classes = as_targets(arrays[TARGETS], TARGETS)
    if task_of(targets) == CLASSES:
        num_classes = _named_classes(arrays, num_classes)
    return {
        "targets": targets,
        "target_level": _level(arrays, num_graphs, len(targets)),
        "num_classes": num_classes,
    }


def _named_classes(arrays: Arrays, seen: int) -> int:
    """Of a part of the data, which need not have all classes."""
    named = np.asarray(arrays.get("num_classes", seen))
    if named.ndim or named.dtype.kind not in "iu" or not 0 < int(named) <= MAX_CLASSES:
        raise ValueError(f"num_classes must be one whole number from 1 to {MAX_CLASSES:,}")
    return int(named)


def _level(arrays: Arrays, graphs: int, targets: int) -> TargetLevel:
    named = str(arrays.get("target_level", "graph" if targets == graphs else "node"))
    if named not in ("graph", "node"):
        raise ValueError(f"target_level must be graph or node, not {named}")
    return "graph" if named == "graph" else "node"


def _integers(arrays: Arrays, name: str) -> Tensor:
    array = np.asarray(arrays[name])
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"{name} must be a vector of whole numbers")
    return torch.from_numpy(array.astype(np.int64))
