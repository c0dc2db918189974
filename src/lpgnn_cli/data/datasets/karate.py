"""Zachary's karate club (1977): who met whom outside the club, and four modularity classes."""

from __future__ import annotations

import torch

from lpgnn_cli.config.dataset import KarateConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.catalogue import CATALOGUE, Entry
from lpgnn_cli.data.dataset import Dataset, Request, dataset

CATALOGUE["karate"] = Entry(1, 34, 156, 4, "none", "networkx")

# The partition of greatest modularity (0.4198, Brandes et al. 2008), one class per member.
CLASSES = (
    *(0, 0, 0, 0, 1, 1, 1, 0, 2, 2, 1, 0, 0, 0, 2, 2, 1),
    *(0, 2, 0, 2, 0, 2, 3, 3, 3, 2, 3, 3, 2, 2, 3, 2, 2),
)


@dataset("karate", KarateConfig)
def load_karate(config: KarateConfig, request: Request) -> Dataset:
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
    return Dataset.from_batch(config, batch)
