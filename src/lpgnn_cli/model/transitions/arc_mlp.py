"""`sum` and `avg`: f_a(v) = Σ_u (or mean over u) h(x_u, l_u, l_(v,u), l_(u,v), x_v, l_v)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lpgnn_cli.config.model import ArcMlpConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.ops import (
    DistinctRows,
    add_products,
    gather_source,
    gather_target,
    sum_activated,
    sum_incoming,
)

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("sum", ArcMlpConfig)
@aggregator("avg", ArcMlpConfig)
class ArcMlp(Transition):
    """h is computed factored: no row is ever a concatenation of both ends of an arc.

    Its first linear layer is a sum of one product for each end of the arc and one for the arc
    labels, so the first two are computed on nodes and gathered. If the output activation is the
    identity, the last linear layer commutes with the sum over u and is computed on nodes as well.
    What is left on arcs, if h has one hidden layer, is a sum and an activation.
    """

    of_some_nodes = True

    def __init__(self, config: ArcMlpConfig, sizes: Sizes) -> None:
        super().__init__()
        self.own_state = config.own_state
        self.average = config.name == "avg"
        own_size = sizes.state if config.own_state else 0
        self.neighbour_label, self.arc = sizes.neighbour_label, sizes.arc
        arc_sizes = [sizes.arc, sizes.arc]
        columns = [sizes.state, sizes.neighbour_label, *arc_sizes, own_size, sizes.label]
        self.h = BlockMLP(config, columns, sizes.out)
        self.output = activation(config.output_activation)
        self.last_on_nodes = config.output_activation == "identity" and len(config.hidden) > 0
        self.summed_activation = _summed_activation(config)

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        blocks = self.h.blocks()
        sent_NS, own_NS = self._normalised(state_NS, batch)
        own_NS = own_NS if self.own_state else own_NS[:, :0]
        if self.summed_activation is None:
            source_NH, target_NH = self._ends(sent_NS, own_NS, label_NL, batch)
            summed_N = self._sum_on_arcs(source_NH, target_NH, blocks[2:4], batch)
        else:
            alike = batch.as_alike_arcs(label_NL)
            if alike is None:
                source_NH, target_NH = self._ends(sent_NS, own_NS, label_NL, batch)
                arc_KH, kind_A = self._arc_products(blocks[2:4], batch)
            else:
                source_NH = add_products([sent_NS], blocks[:1])
                target_NH = add_products([own_NS], blocks[4:5])
                arc_KH, kind_A = self._all_labels(alike), alike.kind
            summed_N = sum_activated(
                source_NH,
                target_NH,
                batch.arcs,
                self.summed_activation,
                arc_KH=arc_KH,
                kind_A=kind_A,
            )
        if self.average:
            summed_N = summed_N / batch.divisor
        if not self.last_on_nodes:
            return summed_N
        # Every arc brings the bias once: degree times in a sum, and in a mean once, unless there
        # is nothing to take the mean of.
        times_N1 = batch.degree.clamp(max=1) if self.average else batch.degree
        last = self.h.last
        return add_products(
            [times_N1.to(summed_N.dtype), summed_N], [last.bias.unsqueeze(1), last.weight]
        )

    def _ends(
        self, sent_NS: Tensor, own_NS: Tensor, label_NL: Tensor, batch: GraphBatch
    ) -> tuple[Tensor, Tensor]:
        """The parts of both ends of an arc in the first layer, one row per node."""
        blocks, label = self.h.blocks(), batch.as_distinct(label_NL)
        neighbour_label = label if self.neighbour_label > 0 else label_NL[:, :0]
        source_NH = add_products([sent_NS, neighbour_label], blocks[:2])
        target_NH = add_products([own_NS, batch.own_of(label)], blocks[4:], self.h.first.bias)
        return source_NH, target_NH

    def _all_labels(self, alike: DistinctRows) -> Tensor:
        """The part of all labels in the first layer and its bias, one row per kind of arc."""
        _, neighbour_label, arc_out, arc_in, _, label = self.h.blocks()
        weight = torch.cat([neighbour_label, arc_out, arc_in, label], dim=1)
        return add_products([alike.rows], [weight], self.h.first.bias)

    def _arc_products(
        self, weights: list[Tensor], batch: GraphBatch
    ) -> tuple[Tensor | None, Tensor | None]:
        """The part of arc labels in the first layer, one row per arc or per kind of arc."""
        if self.arc == 0:
            return None, None
        distinct = batch.distinct_arc_labels
        if distinct is None:
            return add_products([batch.arc_out, batch.arc_in], weights), None
        return add_products(distinct.rows.split(self.arc, dim=1), weights), distinct.kind

    def _normalised(self, state_NS: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """x as it is sent to neighbours, and as a node sees its own: summed over its arcs neither
        grows, so that sums of states stretch nothing while sums of labels stay sums."""
        if self.gain is None or self.average:
            return state_NS, batch.own(state_NS)
        return batch.inverse_norm * state_NS, batch.own(state_NS) / batch.divisor

    def _sum_on_arcs(
        self, source_NH: Tensor, target_NH: Tensor, arc_weights: list[Tensor], batch: GraphBatch
    ) -> Tensor:
        """All of h on arcs but a last layer that is computed on nodes."""
        first_AH = gather_source(source_NH, batch.arcs) + gather_target(target_NH, batch.arcs)
        arc_labels = [batch.arc_out[:, : self.arc], batch.arc_in[:, : self.arc]]
        first_AH = add_products(arc_labels, arc_weights, first_AH)
        if self.last_on_nodes:
            return sum_incoming(self.h.hidden(first_AH), batch.arcs)
        return sum_incoming(self.output(self.h.after_first(first_AH)), batch.arcs)

    def state_weights(self) -> list[Tensor]:
        blocks = self.h.blocks()
        return [blocks[0], blocks[4]] if self.own_state else [blocks[0]]

    def state_gain(self) -> float | None:
        return self.h.gain_of([0, 4] if self.own_state else [0])

    def start_near_identity(self) -> None:
        self.h.start_near_identity(0)
        if self.own_state:
            self.h.blocks()[4].zero_()


def _summed_activation(config: ArcMlpConfig) -> str | None:
    """The activation that follows the first layer, where it is all there is left on arcs."""
    if len(config.hidden) == 0:
        return config.output_activation
    one_layer = len(config.hidden) == 1 and config.output_activation == "identity"
    plain = config.norm == "none" and config.dropout == 0
    return config.activation if one_layer and plain else None
