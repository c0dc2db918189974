"""How long to train, and with how many layers, where `epochs: null` or `layers: null` leave it to
the data.

Many kinds of labels are learnt slowly; few graphs, or graphs with little to tell them apart, gain
nothing from longer training, and thousands of graphs have many steps in each epoch anyway. Layers
tell such labels apart over several hops, where there are graphs enough to learn it from.
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
# Layers, with as many kinds of labels and so many graphs.
DEEP, ENOUGH_FOR_LAYERS = 3, 1000


def suited(config: TrainConfig, dataset: Dataset) -> TrainConfig:
    """The config with a number of epochs and layers: those that it says, or those for this dataset.

    By all of its graphs, so that every fold has the same.
    """
    if config.epochs is not None and config.layers is not None:
        return config
    graphs, kinds = dataset.batch.num_graphs, kinds_of_labels(dataset.batch)
    epochs = length_for(graphs, kinds, config.optim.batch_graphs)
    return replace(
        config,
        epochs=epochs if config.epochs is None else config.epochs,
        layers=layers_for(graphs, kinds) if config.layers is None else config.layers,
    )


def length_for(graphs: int, kinds: int, batch_graphs: int | None) -> int:
    """Epochs, in hundreds."""
    if graphs < ENOUGH_GRAPHS or kinds <= FEW_KINDS:
        return SHORT
    steps = math.ceil(graphs / (batch_graphs or graphs))
    return min(LONG, max(SHORT, STEPS // steps // 100 * 100))


def layers_for(graphs: int, kinds: int) -> int:
    """K."""
    return DEEP if graphs >= ENOUGH_FOR_LAYERS and kinds > FEW_KINDS else 1


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
