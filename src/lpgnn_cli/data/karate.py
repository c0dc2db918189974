"""Zachary's karate club (1977): who met whom outside the club, and four modularity classes."""

from __future__ import annotations

import torch

from lpgnn_cli.config.dataset import KarateConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.features import NodeTables, choose_features

# The partition of greatest modularity (0.4198, Brandes et al. 2008), one class a member.
CLASSES = (
    *(0, 0, 0, 0, 1, 1, 1, 0, 2, 2, 1, 0, 0, 0, 2, 2, 1),
    *(0, 2, 0, 2, 0, 2, 3, 3, 3, 2, 3, 3, 2, 2, 3, 2, 2),
)


def load_karate(config: KarateConfig) -> Dataset:
    """One graph with targets on its nodes; `auto` features are none: structure has to suffice."""
    import networkx as nx

    edges = torch.tensor(sorted(nx.karate_club_graph().edges()), dtype=torch.int64)
    batch = GraphBatch.from_arcs(
        features=torch.zeros(len(CLASSES), 0),
        source=torch.cat([edges[:, 0], edges[:, 1]]),
        target=torch.cat([edges[:, 1], edges[:, 0]]),
        graph_ptr=torch.tensor([0, len(CLASSES)]),
        targets=torch.tensor(CLASSES),
        target_level="node",
        num_classes=4,
    )
    choice = "none" if config.features == "auto" else config.features
    features = choose_features(choice, config.name, NodeTables.bare(batch.arcs.in_degree))
    return Dataset.build(config.name, batch, features, positional=config.positional)
