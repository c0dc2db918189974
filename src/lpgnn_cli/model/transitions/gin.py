"""`gin`: f_a(v) = sigma(h((1 + ε) z_v + Σ_u z_u, Σ_u l_(v,u), Σ_u l_(u,v))), graph isomorphism."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import GinConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.ops import sum_incoming, sum_neighbours

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("gin", GinConfig)
class Gin(Transition):
    def __init__(self, config: GinConfig, sizes: Sizes) -> None:
        super().__init__()
        self.h = BlockMLP(config, [sizes.state, sizes.label, sizes.arc, sizes.arc], sizes.out)
        self.output = activation(config.output_activation)
        self.eps = nn.Parameter(torch.tensor(config.eps), requires_grad=config.train_eps)

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        arcs = batch.arcs
        own = 1 + self.eps
        result: Tensor = self.output(
            self.h(
                own * state_NS + sum_neighbours(state_NS, arcs),
                own * label_NL + sum_neighbours(label_NL, arcs),
                sum_incoming(batch.arc_out, arcs),
                sum_incoming(batch.arc_in, arcs),
            )
        )
        return result

    def state_weights(self) -> list[Tensor]:
        return [self.h.blocks()[0]]
