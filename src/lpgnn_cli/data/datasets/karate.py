"""Zachary's karate club (1977): who met whom outside the club, and four modularity classes."""

from __future__ import annotations

import torch

from lpgnn_cli.config.dataset import KarateConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.catalogue import CATALOGUE, Entry
from lpgnn_cli.data.dataset import Dataset, Request, dataset

CATALOGUE["karate"] = Entry(1, 34, 156, 4, "none", "Zachary 1977")

# Whom each member met, those with a higher number. Written out: to import networkx for it would
# take longer than a short run.
MET = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}
# The partition of greatest modularity (0.4198, Brandes et al. 2008), one class per member.
CLASSES = (
    *(0, 0, 0, 0, 1, 1, 1, 0, 2, 2, 1, 0, 0, 0, 2, 2, 1),
    *(0, 2, 0, 2, 0, 2, 3, 3, 3, 2, 3, 3, 2, 2, 3, 2, 2),
)


@dataset("karate", KarateConfig)
def load_karate(config: KarateConfig, request: Request) -> Dataset:
    """One graph with targets on its nodes; `auto` features are none: structure has to suffice."""
    pairs = [(one, other) for one, others in MET.items() for other in others]
    edges = torch.tensor(pairs, dtype=torch.int64)
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
