"""`gat`: f_a(v) = sigma(Σ_u alpha_uv h(z_u)): attention over ne[v] and v itself, by several heads.

alpha_uv is the softmax over u of LeakyReLU(a · [h(z_u), h(z_v), l_(v,u), l_(u,v)]).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from lpgnn_cli.config.model import GatConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.mlp import linear_layer
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.ops import add_products, gather_source, gather_target, segment_max, sum_incoming

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch

SLOPE = 0.2


@aggregator("gat", GatConfig)
class Gat(Transition):
    """Shapes: K heads, O what each of them puts out."""

    tells_labels_apart = False
    of_some_nodes = True

    def __init__(self, config: GatConfig, sizes: Sizes) -> None:
        super().__init__()
        self.heads = config.heads
        self.arc_size = sizes.arc
        self.concatenated = config.combine == "concat"
        out = sizes.out // config.heads if self.concatenated else sizes.out
        self.h = BlockMLP(config, [sizes.state, sizes.label], config.heads * out)
        self.source_score_KO = nn.Parameter(torch.empty(config.heads, out))
        self.target_score_KO = nn.Parameter(torch.empty(config.heads, out))
        nn.init.xavier_uniform_(self.source_score_KO)
        nn.init.xavier_uniform_(self.target_score_KO)
        self.arc_score = linear_layer(2 * sizes.arc, config.heads, bias=False).weight
        self.output = activation(config.output_activation)

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        arcs = batch.arcs
        flat_N: Tensor = self.h(state_NS, label_NL)
        value_NKO = self._per_head(flat_N)
        source_NK = (value_NKO * self.source_score_KO).sum(dim=2)
        value_NKO = batch.own(value_NKO)
        target_NK = (value_NKO * self.target_score_KO).sum(dim=2)
        own_NK = functional.leaky_relu(batch.own(source_NK) + target_NK, SLOPE)
        arc_AK = gather_source(source_NK, arcs) + gather_target(target_NK, arcs)
        weights = self.arc_score.split_with_sizes([self.arc_size] * 2, dim=1)
        arc_AK = add_products([batch.arc_out, batch.arc_in], weights, arc_AK)
        arc_AK = functional.leaky_relu(arc_AK, SLOPE)

        # A softmax over the arcs into v and v itself; the largest score is taken off for safety.
        highest_NK = segment_max(arc_AK.detach(), arcs.ptr, arcs.target)
        has_arcs_N1 = (arcs.in_degree > 0).unsqueeze(1)
        highest_NK = torch.where(has_arcs_N1, torch.maximum(highest_NK, own_NK), own_NK).detach()
        own_NK = (own_NK - highest_NK).exp()
        arc_AK = (arc_AK - gather_target(highest_NK, arcs)).exp()
        total_NK = own_NK + sum_incoming(arc_AK, arcs)

        message_AKO = self._per_head(gather_source(flat_N, arcs))
        weighted_A = (arc_AK.unsqueeze(2) * message_AKO).flatten(1)
        summed_NKO = self._per_head(sum_incoming(weighted_A, arcs))
        summed_NKO = (summed_NKO + own_NK.unsqueeze(2) * value_NKO) / total_NK.unsqueeze(2)
        heads = summed_NKO.flatten(1) if self.concatenated else summed_NKO.mean(dim=1)
        result: Tensor = self.output(heads)
        return result

    def _per_head(self, rows: Tensor) -> Tensor:
        return rows.view(rows.shape[0], self.heads, rows.shape[1] // self.heads)

    def state_weights(self) -> list[Tensor]:
        return [self.h.blocks()[0]]
