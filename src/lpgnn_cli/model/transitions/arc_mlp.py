"""`sum` and `avg`: f_a(v) = Σ_u (or mean over u) h(x_u, l_u, l_(v,u), l_(u,v), x_v, l_v)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from lpgnn_cli.config.model import ArcMlpConfig
from lpgnn_cli.model.mlp import activation
from lpgnn_cli.model.transitions.base import Transition, blockwise_linear, build_mlp
from lpgnn_cli.ops import gather_source, gather_target, sum_incoming

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


class ArcMlp(Transition):
    """h is computed factored: no row is ever a concatenation of both ends of an arc.

    Its first linear layer is a sum of one product for each end of the arc and one for the arc
    labels, so the first two are computed on nodes and gathered. If the output activation is the
    identity, the last linear layer commutes with the sum over u and is computed on nodes as well.
    The columns of the first weight are ordered as the arguments of h.
    """

    def __init__(
        self, config: ArcMlpConfig, state_size: int, label_size: int, arc_size: int, out_size: int
    ) -> None:
        super().__init__()
        own_state = state_size if config.own_state else 0
        self.source_columns = [state_size, label_size]
        self.target_columns = [own_state, label_size]
        self.arc_columns = [arc_size, arc_size]
        self.own_state = config.own_state
        self.average = config.name == "avg"
        in_size = sum(self.source_columns + self.arc_columns + self.target_columns)
        self.h = build_mlp(config, in_size, out_size)
        self.output = activation(config.output_activation)
        self.last_on_nodes = config.output_activation == "identity" and len(config.hidden) > 0

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        hidden_AH = self._first_layer(state_NS, label_NL, batch)
        if not self.last_on_nodes:
            return self._aggregate(self.output(self.h.after_first(hidden_AH)), batch)
        summed_NH = self._aggregate(self.h.hidden(hidden_AH), batch)
        degree_N1 = batch.arcs.in_degree.unsqueeze(1)
        # The bias was added once for every arc: degree times in a sum, and in a mean once,
        # but not at all where there is nothing to take the mean of.
        times_N1 = degree_N1.clamp(max=1) if self.average else degree_N1
        return summed_NH @ self.h.last.weight.t() + times_N1 * self.h.last.bias

    def _first_layer(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        weight, bias = self.h.first.weight, self.h.first.bias
        sizes = (self.source_columns, self.arc_columns, self.target_columns)
        source, arc, target = weight.split_with_sizes([sum(columns) for columns in sizes], dim=1)
        own_NS = state_NS if self.own_state else state_NS[:, :0]
        source_NH = blockwise_linear(source, None, [state_NS, label_NL], self.source_columns)
        target_NH = blockwise_linear(target, bias, [own_NS, label_NL], self.target_columns)
        hidden_AH = gather_source(source_NH, batch.arcs) + gather_target(target_NH, batch.arcs)
        if self.arc_columns[0] == 0:
            return hidden_AH
        arc_AH = blockwise_linear(arc, None, [batch.arc_out, batch.arc_in], self.arc_columns)
        return hidden_AH + arc_AH

    def _aggregate(self, messages_AH: Tensor, batch: GraphBatch) -> Tensor:
        summed_NH = sum_incoming(messages_AH, batch.arcs)
        if not self.average:
            return summed_NH
        return summed_NH / batch.arcs.in_degree.clamp(min=1).unsqueeze(1)

    def state_weights(self) -> list[Tensor]:
        weight = self.h.first.weight
        state_size = self.source_columns[0]
        blocks = [weight[:, :state_size]]
        if self.own_state:
            start = sum(self.source_columns) + sum(self.arc_columns)
            blocks.append(weight[:, start : start + state_size])
        return blocks
