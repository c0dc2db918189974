"""`none`: f_a(v) = sigma(h(x_v, l_v)), an MLP that sees no neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from lpgnn_cli.config.model import AggregatorConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("none")
class NoNeighbours(Transition):
    of_some_nodes = True

    def __init__(self, config: AggregatorConfig, sizes: Sizes) -> None:
        super().__init__()
        self.h = BlockMLP(config, [sizes.state, sizes.label], sizes.out)
        self.output = activation(config.output_activation)

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        result: Tensor = self.output(self.h(batch.own(state_NS), batch.own(label_NL)))
        return result

    def state_weights(self) -> list[Tensor]:
        return [self.h.blocks()[0]]

    def state_gain(self) -> float | None:
        return self.h.gain_of([0])

    def start_near_identity(self) -> None:
        self.h.start_near_identity(0)
