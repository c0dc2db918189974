"""The parts of one unit: training, validation and test graphs on their device."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import Dataset, FeatureScaler, GraphBatch, Split
from lpgnn_cli.data.part import Part
from lpgnn_cli.training.device import DTYPES


def fit_scaler(config: TrainConfig, dataset: Dataset, split: Split) -> FeatureScaler:
    """Statistics of the training nodes; all nodes of the graph are there in transductive tasks."""
    if config.protocol.of_nodes:
        nodes = torch.arange(dataset.batch.num_nodes)
    else:
        nodes = dataset.batch.nodes_of(split.train)
    return FeatureScaler.fit(dataset, nodes)


def make_parts(
    config: TrainConfig,
    dataset: Dataset,
    split: Split,
    scaler: FeatureScaler,
    device: torch.device,
) -> dict[str, Part]:
    """Parts by name; those without a target to score are left out."""
    indices: dict[str, Tensor] = {"train": split.train, "test": split.test}
    if split.val is not None:
        indices["val"] = split.val
    scaled = scaler.apply(dataset.batch)
    if config.protocol.of_nodes:
        batch = place(scaled, config, device)
        return {
            name: Part(batch, scored=nodes.to(device))
            for name, nodes in indices.items()
            if nodes.numel()
        }
    whole = Part(scaled, dataset.scored)
    parts = {name: whole.subset(graphs) for name, graphs in indices.items() if graphs.numel()}
    return {
        name: Part(
            place(part.batch, config, device),
            scored=None if part.scored is None else part.scored.to(device),
        )
        for name, part in parts.items()
    }


def place(batch: GraphBatch, config: TrainConfig, device: torch.device) -> GraphBatch:
    """The batch on the device, in the precision of the config."""
    dtype = DTYPES[config.precision]
    moved = batch.to(device)
    return replace(
        moved,
        features=moved.features.to(dtype),
        arc_in=moved.arc_in.to(dtype),
        arc_out=moved.arc_out.to(dtype),
    )
