"""From a dataset's config to its graphs."""

from __future__ import annotations

import torch

from lpgnn_cli.config.dataset import (
    CslConfig,
    DatasetConfig,
    KarateConfig,
    PatternConfig,
    TuConfig,
)
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.csl import generate_csl
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.features import NodeTables, choose_features, one_hot
from lpgnn_cli.data.karate import load_karate
from lpgnn_cli.data.patterns import generate_pattern
from lpgnn_cli.data.sources import find_tables
from lpgnn_cli.data.tu import TuTables


def load_dataset(config: DatasetConfig, data_root: str | None, seed: int) -> Dataset:
    """Load or generate a dataset; UserError says in one sentence why it cannot be had."""
    match config:
        case KarateConfig():
            return load_karate(config)
        case PatternConfig():
            return generate_pattern(config, seed)
        case CslConfig():
            return generate_csl(config, seed)
        case TuConfig():
            return dataset_from_tables(config, find_tables(config, data_root))
    raise AssertionError(f"no loader for {type(config).__name__}")


def dataset_from_tables(config: TuConfig, tables: TuTables) -> Dataset:
    """A dataset in TU format, with labels (or else attributes, or else degrees) as features."""
    edge_labels = one_hot(torch.from_numpy(tables.edge_labels))
    num_nodes = int(tables.graph_ptr[-1])
    batch = GraphBatch.from_arcs(
        features=torch.zeros(num_nodes, 0),
        source=torch.from_numpy(tables.source),
        target=torch.from_numpy(tables.target),
        arc_labels=torch.cat([edge_labels, torch.from_numpy(tables.edge_attributes)], dim=1),
        graph_ptr=torch.from_numpy(tables.graph_ptr),
        targets=torch.from_numpy(tables.targets),
        target_level="graph",
        num_classes=tables.classes.size,
    )
    nodes = NodeTables(
        labels=torch.from_numpy(tables.node_labels),
        attributes=torch.from_numpy(tables.node_attributes),
        degrees=batch.arcs.in_degree,
    )
    choice = config.features
    if choice == "auto":
        available = {"labels": nodes.labels, "attributes": nodes.attributes}
        choice = next((k for k, table in available.items() if table.shape[1]), "degree")
    features = choose_features(choice, config.name, nodes)
    return Dataset.build(config.name, batch, features, positional=config.positional)
