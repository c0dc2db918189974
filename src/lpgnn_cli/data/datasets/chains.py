"""Chains whose class is written on their first node alone: how far does a label travel?"""

from __future__ import annotations

import numpy as np
import torch

from lpgnn_cli.config.dataset import ChainsConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.catalogue import CATALOGUE, Entry
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.data.masks import Masks
from lpgnn_cli.errors import UserError

CATALOGUE["chains"] = Entry(40, 4000, 7920, 2, "100 columns, on heads alone", "generated")


@dataset("chains", ChainsConfig)
def generate_chains(config: ChainsConfig, request: Request) -> Dataset:
    """`chains` chains of each class, one graph each; random nodes of all of them are labelled."""
    length, count = config.length, config.classes * config.chains
    classes = np.arange(config.classes).repeat(config.chains)
    heads = np.arange(count) * length
    features = np.zeros((count * length, config.columns), dtype=np.float32)
    features[heads, classes] = 1
    before = np.setdiff1d(np.arange(count * length), heads + length - 1)
    sources, targets = [before], [before + 1]
    if not config.directed:
        sources, targets = [before, before + 1], [before + 1, before]
    batch = GraphBatch.from_arcs(
        features=torch.from_numpy(features),
        source=torch.from_numpy(np.concatenate(sources)),
        target=torch.from_numpy(np.concatenate(targets)),
        graph_ptr=torch.arange(count + 1) * length,
        targets=torch.from_numpy(classes.repeat(length)),
        target_level="node",
        num_classes=config.classes,
    )
    return Dataset.from_batch(config, batch, masks=_draw(config, request.seed), seeded=True)


def _draw(config: ChainsConfig, seed: int) -> Masks:
    nodes = config.classes * config.chains * config.length
    train, val = round(nodes * config.labelled), round(nodes * config.validation)
    if min(train, val, nodes - train - val) < 1:
        raise UserError(
            f"dataset.labelled={config.labelled:g} and dataset.validation={config.validation:g} of "
            f"{nodes} nodes leave a part without any: choose other shares."
        )
    # RandomState: its streams are frozen, those of newer generators may change with numpy.
    order = np.random.RandomState(seed).permutation(nodes)
    parts = np.split(order, [train, train + val])
    masks = [torch.from_numpy(np.isin(np.arange(nodes), part))[None] for part in parts]
    return Masks(*masks)
