"""From a dataset's config to its graphs."""

from __future__ import annotations

import torch

from lpgnn_cli.config.dataset import (
    CslConfig,
    DatasetConfig,
    GraphsConfig,
    KarateConfig,
    PatternConfig,
    TuConfig,
)
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.csl import generate_csl
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.features import NodeTables, choose_features
from lpgnn_cli.data.graphs import load_graphs
from lpgnn_cli.data.karate import load_karate
from lpgnn_cli.data.patterns import generate_pattern
from lpgnn_cli.data.sources import find_tables
from lpgnn_cli.data.tu import TuTables, check_classes
from lpgnn_cli.data.vocabulary import Vocabulary, indices, one_hot


def load_dataset(
    config: DatasetConfig, data_root: str | None, seed: int, vocabulary: Vocabulary | None = None
) -> Dataset:
    """Load or generate a dataset; UserError says in one sentence why it cannot be had.

    With the `vocabulary` of a trained network, labels get the columns that it knows them by.
    """
    match config:
        case KarateConfig():
            return load_karate(config)
        case PatternConfig():
            return generate_pattern(config, seed)
        case CslConfig():
            return generate_csl(config, seed)
        case TuConfig():
            return dataset_from_tables(config, find_tables(config, data_root), vocabulary)
        case GraphsConfig():
            return load_graphs(config, vocabulary)
    raise AssertionError(f"no loader for {type(config).__name__}")


def dataset_from_tables(
    config: TuConfig, tables: TuTables, vocabulary: Vocabulary | None = None
) -> Dataset:
    """A dataset in TU format, with labels (or else attributes, or else degrees) as features."""
    if vocabulary is None:
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
    classes = torch.from_numpy(tables.classes[tables.targets])
    batch = GraphBatch.from_arcs(
        features=torch.zeros(num_nodes, 0),
        source=torch.from_numpy(tables.source),
        target=target,
        arc_labels=torch.cat([arc_columns, torch.from_numpy(tables.edge_attributes)], dim=1),
        graph_ptr=torch.from_numpy(tables.graph_ptr),
        targets=indices(classes, vocabulary.classes, "class"),
        target_level="graph",
        num_classes=len(vocabulary.classes),
    )
    choice = config.features
    if choice == "auto":
        available = {"labels": nodes.labels, "attributes": nodes.attributes}
        choice = next((k for k, table in available.items() if table.shape[1]), "degree")
    features = choose_features(choice, config.name, nodes, vocabulary)
    return Dataset.build(
        config.name, batch, features, positional=config.positional, vocabulary=vocabulary
    )
