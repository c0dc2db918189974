"""A graph network: K transitions and a readout. States come from the propagation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from torch import Tensor, nn

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.metrics import CLASSES
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.mlp import BatchNorm, normalisation
from lpgnn_cli.model.readout import Readout
from lpgnn_cli.model.transitions import Transition, build_transition


@dataclass(frozen=True)
class DataShape:
    """What a network must know of the data it is built for."""

    features: int
    arc_features: int
    classes: int
    target_level: str
    # The mean number of nodes of a graph.
    nodes: float
    task: str = CLASSES
    # Whether all arcs go both ways.
    symmetric: bool = False

    @classmethod
    def of(cls, batch: GraphBatch) -> DataShape:
        return cls(
            features=batch.features.shape[1],
            arc_features=batch.arc_in.shape[1],
            classes=batch.num_classes,
            target_level=batch.target_level,
            nodes=batch.num_nodes / max(1, batch.num_graphs),
            task=batch.task,
            symmetric=batch.is_symmetric,
        )


class Transitions(nn.ModuleList):
    """Those of all layers, lowest first."""

    def __iter__(self) -> Iterator[Transition]:
        for module in super().__iter__():
            assert isinstance(module, Transition)
            yield module


class Network(nn.Module):
    """f_a of every layer and f_r."""

    def __init__(self, config: TrainConfig, shape: DataShape) -> None:
        super().__init__()
        self.state_sizes = state_sizes(config, shape.classes)
        label_sizes = [shape.features, *self.state_sizes[:-1]]
        self.transitions = Transitions(
            build_transition(
                config.aggregator,
                state_size=0 if config.propagation.stateless else size,
                label_size=label_size,
                arc_size=shape.arc_features,
                out_size=size,
                own_label_only=layer > 0 and config.propagation.upper == "own",
            )
            for layer, (size, label_size) in enumerate(
                zip(self.state_sizes, label_sizes, strict=True)
            )
        )
        for transition in self.transitions:
            transition.symmetric = shape.symmetric
        norm, after = config.propagation.output
        self.outputs = nn.ModuleList(
            nn.Sequential(normalisation(norm, size), activation(after)) for size in self.state_sizes
        )
        self.norms = nn.ModuleList(
            normalisation(config.propagation.hand_up_norm, size) for size in label_sizes[1:]
        )
        self.readout = Readout(
            config.readout,
            self.state_sizes,
            shape.classes,
            shape.target_level,
            shape.nodes,
            shape.features,
        )

    @cached_property
    def _everything(self) -> list[nn.Module]:
        return list(self.modules())

    @cached_property
    def weights(self) -> list[nn.Parameter]:
        """All that is learnt: torch's own walk to them takes as long as a step on small data."""
        return [weight for weight in self.parameters() if weight.requires_grad]

    @cached_property
    def has_statistics(self) -> bool:
        """Whether evaluation goes by statistics of the training graphs."""
        return any(isinstance(module, BatchNorm) for module in self._everything)

    def train(self, mode: bool = True) -> Self:
        """As torch has it; on small data, its walk through the modules was a sixth of an epoch."""
        for module in self._everything:
            vars(module)["training"] = mode
        return self

    def label(self, layer: int, below: Sequence[Tensor], batch: GraphBatch) -> Tensor:
        """The node labels of a layer: the features, or what the layer below it hands up."""
        if layer == 0:
            return batch.features
        label: Tensor = self.norms[layer - 1](below[layer - 1])
        return label

    def transition(
        self, layer: int, state: Tensor, below: Sequence[Tensor], batch: GraphBatch
    ) -> Tensor:
        """f_a(x) of one layer, given what each of the layers below hands up."""
        transit = self.transitions[layer](state, self.label(layer, below, batch), batch)
        result: Tensor = self.outputs[layer](transit)
        return result

    def source(self, states: Sequence[Tensor], transits: Sequence[Tensor]) -> Sequence[Tensor]:
        """What f_r reads: f_a(x) or x."""
        return transits if self.readout.source == "transition" else states

    def read(
        self, states: Sequence[Tensor], transits: Sequence[Tensor], batch: GraphBatch
    ) -> Tensor:
        """Class scores."""
        scores: Tensor = self.readout(self.source(states, transits), batch)
        return scores

    def zero_states(self, batch: GraphBatch) -> list[Tensor]:
        """x = 0 for every node and layer."""
        return [batch.features.new_zeros(batch.num_nodes, size) for size in self.state_sizes]


def state_sizes(config: TrainConfig, classes: int) -> list[int]:
    """One state size per layer: a single one holds for all; states that are scores have theirs."""
    assert config.layers is not None
    sizes = list(config.state) * (config.layers if len(config.state) == 1 else 1)
    return sizes if config.readout.learnt else [*sizes[:-1], classes]
