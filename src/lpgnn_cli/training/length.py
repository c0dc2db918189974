"""How many epochs to train for, where `epochs: null` leaves that to the data.

Many kinds of labels are learnt slowly; few graphs, or graphs with little to tell them apart, gain
nothing from longer training, and thousands of graphs have many steps in each epoch anyway.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import Dataset, GraphBatch

SHORT, LONG = 100, 300
# Training is longer with so many graphs, and more kinds of labels than that.
ENOUGH_GRAPHS, FEW_KINDS = 200, 3
# Of the weights, in all longer training.
STEPS = 6000


def with_length(config: TrainConfig, dataset: Dataset) -> TrainConfig:
    """The config with a number of epochs: the one that it says, or the one for this dataset.

    That of all graphs, so that every fold has the same.
    """
    if config.epochs is not None:
        return config
    batch = dataset.batch
    kinds = kinds_of_labels(batch)
    return replace(config, epochs=length_for(batch.num_graphs, kinds, config.optim.batch_graphs))


def length_for(graphs: int, kinds: int, batch_graphs: int | None) -> int:
    """Epochs, in hundreds."""
    if graphs < ENOUGH_GRAPHS or kinds <= FEW_KINDS:
        return SHORT
    steps = math.ceil(graphs / (batch_graphs or graphs))
    return min(LONG, max(SHORT, STEPS // steps // 100 * 100))


def kinds_of_labels(batch: GraphBatch) -> int:
    """Different features among nodes of one degree, at most: degrees as features are one kind."""
    if not batch.features.shape[1]:
        return 1
    _, row = batch.features.unique(dim=0, return_inverse=True)
    pairs = torch.stack([batch.arcs.in_degree.to(row), row]).unique(dim=1)
    return int(pairs[0].bincount().max())


def length_of(config: TrainConfig) -> int:
    """The number of epochs of a config that has been prepared."""
    assert config.epochs is not None
    return config.epochs
