"""Datasets in TU format, by name or by path."""

from __future__ import annotations

from typing import Any

import torch

from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.data.asked import without_targets
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.data.features import NodeTables, by_degree, choose_features
from lpgnn_cli.data.sources import find_tables
from lpgnn_cli.data.tu import TuTables, check_classes
from lpgnn_cli.data.vocabulary import Vocabulary, indices, one_hot


@dataset("tu", TuConfig)
def load_tu(config: TuConfig, request: Request) -> Dataset:
    """From the package, a path, the data folder or the collection, whichever has it."""
    tables = find_tables(config, request.data_root, targets=request.targets)
    return dataset_from_tables(config, tables, request.vocabulary, targets=request.targets)


def dataset_from_tables(
    config: TuConfig,
    tables: TuTables,
    vocabulary: Vocabulary | None = None,
    *,
    targets: bool = True,
) -> Dataset:
    """A dataset in TU format, with labels (or else attributes, or else degrees) as features."""
    if vocabulary is None and targets:
        check_classes(tables, config.path or config.name, config.name)
    num_nodes = int(tables.graph_ptr[-1])
    target = torch.from_numpy(tables.target)
    nodes = NodeTables(
        labels=torch.from_numpy(tables.node_labels),
        attributes=torch.from_numpy(tables.node_attributes),
        degrees=torch.bincount(target, minlength=num_nodes),
    )
    arc_labels = torch.from_numpy(tables.edge_labels)
    vocabulary = vocabulary or Vocabulary.of(
        node_labels=nodes.labels,
        arc_labels=arc_labels,
        degrees=nodes.degrees,
        classes=tables.classes.tolist(),
    )
    arc_columns = one_hot(arc_labels, vocabulary.arc_labels, "arc label")
    batch = GraphBatch.from_arcs(
        features=torch.zeros(num_nodes, 0),
        source=torch.from_numpy(tables.source),
        target=target,
        arc_labels=torch.cat([arc_columns, torch.from_numpy(tables.edge_attributes)], dim=1),
        graph_ptr=torch.from_numpy(tables.graph_ptr),
        **(_classes(tables, vocabulary) if targets else without_targets(tables.num_graphs)),
    )
    choice = config.features
    if choice == "auto":
        available = {"labels": nodes.labels, "attributes": nodes.attributes}
        own = (k for k, table in available.items() if table.shape[1])
        choice = next(own, by_degree(vocabulary))
    features = choose_features(choice, config.name, nodes, vocabulary)
    return Dataset.build(
        config.name, batch, features, positional=config.positional, vocabulary=vocabulary
    )


def _classes(tables: TuTables, vocabulary: Vocabulary) -> dict[str, Any]:
    classes = torch.from_numpy(tables.classes[tables.targets])
    return {
        "targets": indices(classes, vocabulary.classes, "class"),
        "target_level": "graph",
        "num_classes": len(vocabulary.classes),
    }
