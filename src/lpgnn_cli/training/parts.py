"""The parts of one unit: training, validation and test graphs on their device."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import Dataset, FeatureScaler, GraphBatch, Split
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.scaling import are_words
from lpgnn_cli.data.targets import Judging, Units, balanced_weights
from lpgnn_cli.metrics import NUMBERS, TEST
from lpgnn_cli.training.device import DTYPES


def fit_scaler(config: TrainConfig, dataset: Dataset, split: Split) -> FeatureScaler:
    """Statistics of the training nodes; all nodes of the graph are there in transductive tasks."""
    if config.protocol.of_nodes:
        if are_words(dataset.batch.features):
            return FeatureScaler.of_words(dataset.batch.features)
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
    judging = judge(config, dataset, _training_targets(config, dataset, split), device)
    scaled = in_units(scaler.apply(dataset.batch), judging.units)
    if config.protocol.of_nodes:
        batch = place(scaled, config, device)
        return {
            name: Part(batch, nodes.to(device), judging)
            for name, nodes in indices.items()
            if nodes.numel()
        }
    whole = Part(scaled, dataset.scored, judging)
    parts = {name: whole.subset(graphs) for name, graphs in indices.items() if graphs.numel()}
    return {
        name: replace(
            part,
            batch=place(part.batch, config, device),
            scored=None if part.scored is None else part.scored.to(device),
        )
        for name, part in parts.items()
    }


def items_of(config: TrainConfig, dataset: Dataset, split: Split, name: str) -> Tensor | None:
    """The index in the dataset of each target of a part's batch; None: the batch has them all."""
    if config.protocol.of_nodes:
        return None
    graphs = split.test if name == TEST else split.train
    return graphs if dataset.batch.target_level == "graph" else dataset.batch.nodes_of(graphs)


def judge(config: TrainConfig, dataset: Dataset, targets: Tensor, device: torch.device) -> Judging:
    """By the metric that is asked for, with the weights and units of the training targets."""
    weights = None
    if config.class_weights == "balanced":
        weights = balanced_weights(targets, dataset.batch.num_classes)
    return Judging(
        metric=dataset.judged_by(config.metric).name,
        weights=None if weights is None else weights.to(device, DTYPES[config.precision]),
        units=Units.fit(targets) if dataset.batch.task == NUMBERS else None,
    )


def in_units(batch: GraphBatch, units: Units | None) -> GraphBatch:
    """Targets that are numbers, as the network learns them."""
    return batch if units is None else replace(batch, targets=units.apply(batch.targets))


def _training_targets(config: TrainConfig, dataset: Dataset, split: Split) -> Tensor:
    batch = dataset.batch
    if config.protocol.of_nodes or batch.target_level == "graph":
        return batch.targets[split.train]
    nodes = batch.nodes_of(split.train)
    if dataset.scored is not None:
        nodes = nodes[torch.isin(nodes, dataset.scored)]
    return batch.targets[nodes]


def place(batch: GraphBatch, config: TrainConfig, device: torch.device) -> GraphBatch:
    """The batch on the device, in the precision of the config."""
    dtype = DTYPES[config.precision]
    moved = batch.to(device)
    return replace(
        moved,
        features=moved.features.to(dtype),
        arc_in=moved.arc_in.to(dtype),
        arc_out=moved.arc_out.to(dtype),
        targets=moved.targets.to(dtype) if batch.task == NUMBERS else moved.targets,
    )
