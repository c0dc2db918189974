"""`sum` and `avg`: f_a(v) = Σ_u (or mean over u) h(x_u, l_u, l_(v,u), l_(u,v), x_v, l_v)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from lpgnn_cli.config.model import ArcMlpConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, add_products, aggregator
from lpgnn_cli.ops import gather_source, gather_target, sum_incoming

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("sum", ArcMlpConfig)
@aggregator("avg", ArcMlpConfig)
class ArcMlp(Transition):
    """h is computed factored: no row is ever a concatenation of both ends of an arc.

    Its first linear layer is a sum of one product for each end of the arc and one for the arc
    labels, so the first two are computed on nodes and gathered. If the output activation is the
    identity, the last linear layer commutes with the sum over u and is computed on nodes as well.
    """

    def __init__(self, config: ArcMlpConfig, sizes: Sizes) -> None:
        super().__init__()
        self.own_state = config.own_state
        self.average = config.name == "avg"
        own_size = sizes.state if config.own_state else 0
        columns = [sizes.state, sizes.label, sizes.arc, sizes.arc, own_size, sizes.label]
        self.h = BlockMLP(config, columns, sizes.out)
        self.output = activation(config.output_activation)
        self.last_on_nodes = config.output_activation == "identity" and len(config.hidden) > 0

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        first_AH = self._first_layer(state_NS, label_NL, batch)
        if not self.last_on_nodes:
            return self._aggregate(self.output(self.h.after_first(first_AH)), batch)
        hidden_NH = self._aggregate(self.h.hidden(first_AH), batch)
        degree_N1 = batch.arcs.in_degree.unsqueeze(1)
        # Every arc brings the bias once: degree times in a sum, and in a mean once, unless there
        # is nothing to take the mean of.
        times_N1 = degree_N1.clamp(max=1) if self.average else degree_N1
        return hidden_NH @ self.h.last.weight.t() + times_N1 * self.h.last.bias

    def _first_layer(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        blocks = self.h.blocks()
        own_NS = state_NS if self.own_state else state_NS[:, :0]
        source_NH = add_products([state_NS, label_NL], blocks[:2])
        target_NH = add_products([own_NS, label_NL], blocks[4:], self.h.first.bias)
        first_AH = gather_source(source_NH, batch.arcs) + gather_target(target_NH, batch.arcs)
        return add_products([batch.arc_out, batch.arc_in], blocks[2:4], first_AH)

    def _aggregate(self, messages_AH: Tensor, batch: GraphBatch) -> Tensor:
        summed_NH = sum_incoming(messages_AH, batch.arcs)
        if not self.average:
            return summed_NH
        return summed_NH / batch.arcs.in_degree.clamp(min=1).unsqueeze(1)

    def state_weights(self) -> list[Tensor]:
        blocks = self.h.blocks()
        return [blocks[0], blocks[4]] if self.own_state else [blocks[0]]
