"""A graph network: K transitions and a readout. States come from the propagation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import LagrangianConfig, LayersConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.mlp import normalisation
from lpgnn_cli.model.readout import Readout
from lpgnn_cli.model.transitions import build_transition


@dataclass(frozen=True)
class DataShape:
    """What a network must know of the data it is built for."""

    features: int
    arc_features: int
    classes: int
    target_level: str

    @classmethod
    def of(cls, batch: GraphBatch) -> DataShape:
        return cls(
            features=batch.features.shape[1],
            arc_features=batch.arc_in.shape[1],
            classes=batch.num_classes,
            target_level=batch.target_level,
        )


class Network(nn.Module):
    """f_a of every layer and f_r."""

    def __init__(self, config: TrainConfig, shape: DataShape) -> None:
        super().__init__()
        self.state_sizes = state_sizes(config)
        # In `layers` the output of a transition is no argument of itself: it sees labels only.
        stateless = isinstance(config.propagation, LayersConfig)
        label_sizes = [shape.features, *self.state_sizes[:-1]]
        self.transitions = nn.ModuleList(
            build_transition(
                config.aggregator,
                state_size=0 if stateless else size,
                label_size=label_size,
                arc_size=shape.arc_features,
                out_size=size,
            )
            for size, label_size in zip(self.state_sizes, label_sizes, strict=True)
        )
        self.norms = nn.ModuleList(
            normalisation(config.propagation.norm, size) for size in label_sizes[1:]
        )
        self.readout = Readout(config.readout, self.state_sizes, shape.classes)
        propagation = config.propagation
        self.hands_up_transition = (
            isinstance(propagation, LagrangianConfig) and propagation.hand_up == "transition"
        )

    def transit(self, states: Sequence[Tensor], batch: GraphBatch) -> list[Tensor]:
        """f_a(x) of every layer at the given states; x of layer k is the label of layer k + 1."""
        transits: list[Tensor] = []
        for transition, state in zip(self.transitions, states, strict=True):
            below = transits if self.hands_up_transition else states
            transits.append(transition(state, self.label(len(transits), below, batch), batch))
        return transits

    def label(self, layer: int, below: Sequence[Tensor], batch: GraphBatch) -> Tensor:
        """The node labels of a layer: the features, or what the layer below it hands up."""
        if layer == 0:
            return batch.features
        label: Tensor = self.norms[layer - 1](below[layer - 1])
        return label

    def read(
        self, states: Sequence[Tensor], transits: Sequence[Tensor], batch: GraphBatch
    ) -> Tensor:
        """Class scores, read from f_a(x) or from x."""
        source = transits if self.readout.config.source == "transition" else states
        scores: Tensor = self.readout(source, batch)
        return scores

    def zero_states(self, batch: GraphBatch) -> list[Tensor]:
        """x = 0 for every node and layer."""
        return [batch.features.new_zeros(batch.num_nodes, size) for size in self.state_sizes]


def state_sizes(config: TrainConfig) -> list[int]:
    """One state size a layer: a single one holds for all."""
    return list(config.state) * (config.layers if len(config.state) == 1 else 1)


def residuals(states: Sequence[Tensor], transits: Sequence[Tensor]) -> list[Tensor]:
    """x - f_a(x), layer by layer."""
    return [x - f for x, f in zip(states, transits, strict=True)]


def graph_violation(differences: Sequence[Tensor], batch: GraphBatch) -> Tensor:
    """The mean of |x - f_a(x)| over the nodes, dimensions and layers of each graph, shape (G,)."""
    per_node = torch.cat([r.abs() for r in differences], dim=1).mean(dim=1)
    total = per_node.new_zeros(batch.num_graphs).index_add(0, batch.graph_of_node, per_node)
    nodes: Tensor = batch.graph_ptr.diff().clamp(min=1)
    return total / nodes
