"""`gcn`: f_a(v) = sigma(h_0(z_v) + Σ_u c_uv h_1(z_u) + W Σ_u c_uv [l_(v,u), l_(u,v)])."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from lpgnn_cli.config.model import AggregatorConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.mlp import linear_layer
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.model.transitions.shift import GraphShift
from lpgnn_cli.ops import add_products

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("gcn")
class Gcn(Transition):
    """The graph convolution, with c_uv = 1 / sqrt(d_u d_v)."""

    of_some_nodes = True

    def __init__(self, config: AggregatorConfig, sizes: Sizes) -> None:
        super().__init__()
        self.h_own = BlockMLP(config, [sizes.state, sizes.label], sizes.out)
        self.neighbour_label = sizes.neighbour_label
        self.h_neighbour = BlockMLP(config, [sizes.state, sizes.neighbour_label], sizes.out)
        self.arc_size = sizes.arc
        self.arc_weight = linear_layer(2 * sizes.arc, sizes.out, bias=False).weight
        self.output = activation(config.output_activation)

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        shift = GraphShift(batch.arcs, state_NS.dtype)
        sent_NO = self.h_neighbour(state_NS, label_NL[:, : self.neighbour_label])
        total_NO = self.h_own(batch.own(state_NS), batch.own(label_NL)) + shift(sent_NO)
        if self.arc_size > 0:
            labels = [shift.of_arcs(batch.arc_out), shift.of_arcs(batch.arc_in)]
            weights = self.arc_weight.split_with_sizes([self.arc_size] * 2, dim=1)
            total_NO = add_products(labels, weights, total_NO)
        result: Tensor = self.output(total_NO)
        return result

    def state_weights(self) -> list[Tensor]:
        return [self.h_own.blocks()[0], self.h_neighbour.blocks()[0]]

    def state_gain(self) -> float | None:
        own, neighbour = self.h_own.gain_of([0]), self.h_neighbour.gain_of([0])
        return None if own is None or neighbour is None else own + neighbour

    def start_near_identity(self) -> None:
        self.h_neighbour.start_near_identity(0)
        self.h_own.blocks()[0].zero_()
