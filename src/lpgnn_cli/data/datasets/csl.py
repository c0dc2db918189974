"""Circulant skip-link graphs: 4-regular graphs that differ only in the length of their skips."""

from __future__ import annotations

import numpy as np
import torch

from lpgnn_cli.config.dataset import CslConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.catalogue import CATALOGUE, Entry
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.errors import UserError

CATALOGUE["csl"] = Entry(150, 6150, 24600, 10, "20 eigenvectors", "generated")


@dataset("csl", CslConfig)
def generate_csl(config: CslConfig, request: Request) -> Dataset:
    """`copies` relabelled copies of the cycle with skips of each length, ordered by class.

    `auto` features are none beside the positional encoding: nothing else tells nodes apart.
    """
    n, skips = config.nodes, list(config.skips)
    if len(skips) < 2 or len(set(skips)) < len(skips):
        raise UserError("dataset.skips must be two or more different lengths, one class each.")
    if 2 * max(skips) >= n:
        raise UserError(
            f"dataset.skips={max(skips)} is too long for a cycle of {n} nodes: it must be less "
            "than half of dataset.nodes."
        )
    # The same graphs whatever the seed: initialisations vary the weights, not the data.
    # RandomState: its streams are frozen, those of newer generators may change with numpy.
    random = np.random.RandomState(0)
    node = np.arange(n)
    sources, targets = [], []
    graphs = [skip for skip in skips for _ in range(config.copies)]
    for graph, skip in enumerate(graphs):
        label = random.permutation(n) + graph * n
        for step in (1, skip):
            there = label[(node + step) % n]
            sources += [label, there]
            targets += [there, label]
    batch = GraphBatch.from_arcs(
        features=torch.zeros(len(graphs) * n, 0),
        source=torch.from_numpy(np.concatenate(sources)),
        target=torch.from_numpy(np.concatenate(targets)),
        graph_ptr=torch.arange(len(graphs) + 1) * n,
        targets=torch.arange(len(skips)).repeat_interleave(config.copies),
        target_level="graph",
        num_classes=len(skips),
    )
    return Dataset.from_batch(config, batch)
