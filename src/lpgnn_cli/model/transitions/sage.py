"""`sage`: f_a(v) = sigma(h(z_v, max_u m_u)), GraphSAGE with the element-wise maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lpgnn_cli.config.model import AggregatorConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.ops import gather_source, segment_max

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("sage")
class Sage(Transition):
    of_some_nodes = True

    def __init__(self, config: AggregatorConfig, sizes: Sizes) -> None:
        super().__init__()
        self.neighbour_label, self.arc = sizes.neighbour_label, sizes.arc
        message_columns = [sizes.state, sizes.neighbour_label, 2 * sizes.arc]
        self.h = BlockMLP(config, [sizes.state, sizes.label, *message_columns], sizes.out)
        self.output = activation(config.output_activation)

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        arcs = batch.arcs
        messages = [
            gather_source(state_NS, arcs),
            gather_source(label_NL[:, : self.neighbour_label], arcs),
        ]
        highest = [segment_max(message, arcs.ptr, arcs.target) for message in messages]
        highest.append(batch.arc_maxima[:, : 2 * self.arc])
        result: Tensor = self.output(self.h(batch.own(state_NS), batch.own(label_NL), *highest))
        return result

    def state_weights(self) -> list[Tensor]:
        blocks = self.h.blocks()
        return [blocks[0], blocks[2]]

    def state_gain(self) -> float | None:
        # A maximum moves no further than its furthest element: a bound in the maximum norm.
        return self.h.gain_of([0, 2], order=torch.inf)

    def start_near_identity(self) -> None:
        self.h.start_near_identity(2, order=torch.inf)
        self.h.blocks()[0].zero_()
