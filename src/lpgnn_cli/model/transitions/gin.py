"""`gin`: f_a(v) = sigma(h((1 + ε) z_v + Σ_u z_u, Σ_u l_(v,u), Σ_u l_(u,v))), graph isomorphism."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import GinConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.ops import sum_neighbours

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("gin", GinConfig)
class Gin(Transition):
    of_some_nodes = True

    def __init__(self, config: GinConfig, sizes: Sizes) -> None:
        super().__init__()
        self.own_label_only, self.arc = sizes.own_label_only, sizes.arc
        self.h = BlockMLP(config, [sizes.state, sizes.label, 2 * sizes.arc], sizes.out)
        self.output = activation(config.output_activation)
        self.eps = nn.Parameter(torch.tensor(config.eps), requires_grad=config.train_eps)

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        own = 1 + self.eps
        summed_NS = own * batch.own(state_NS) + sum_neighbours(state_NS, batch.arcs)
        if self.gain is not None:  # |(1 + eps) I + A| is at most the sum of both
            summed_NS = summed_NS / (own.abs() + 1 / batch.own(batch.inverse_norm))
        summed_NL = own * batch.own(label_NL)
        if not self.own_label_only:
            summed_NL = summed_NL + self._neighbour_labels(label_NL, batch)
        arc_sums = batch.arc_sums[:, : 2 * self.arc]
        result: Tensor = self.output(self.h(summed_NS, summed_NL, arc_sums))
        return result

    def _neighbour_labels(self, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        if label_NL is batch.features and not label_NL.requires_grad:
            return batch.neighbour_sums
        return sum_neighbours(label_NL, batch.arcs)

    def state_weights(self) -> list[Tensor]:
        return [self.h.blocks()[0]]

    def state_gain(self) -> float | None:
        return self.h.gain_of([0])

    def start_near_identity(self) -> None:
        self.h.start_near_identity(0)
