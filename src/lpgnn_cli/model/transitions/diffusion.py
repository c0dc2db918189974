"""`diffusion`: f_a = sigma(N x W_1 + x W_2 + b(l)), a linear way for states beside a free one for
labels.

N is the adjacency, normalised so that it stretches nothing. b is an MLP of the labels: of the
node's own, and of the sums over its neighbours and arcs where they are to be seen. A gate
multiplies it by factors that are linear in the node's own label. States and labels meet in sigma
alone, so a bound on the gain is a bound on W_1 and W_2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import DiffusionConfig
from lpgnn_cli.model.activations import LIPSCHITZ, activation
from lpgnn_cli.model.gate import LabelGate
from lpgnn_cli.model.operator_norm import norm_of_both, operator_norm
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.model.transitions.shift import GraphShift
from lpgnn_cli.ops import DistinctRows, SparseRows, add_products, sum_neighbours

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch

Pair = tuple[Tensor, Tensor]


@aggregator("diffusion", DiffusionConfig)
class Diffusion(Transition):
    """W_1 mixes what comes from neighbours, W_2 what is a node's own."""

    of_some_nodes = True

    def __init__(self, config: DiffusionConfig, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        self.sees_neighbours = config.neighbour_labels and not sizes.own_label_only
        self.neighbour_label = sizes.label if self.sees_neighbours else 0
        self.arc = sizes.arc if self.sees_neighbours else 0
        columns = [sizes.label, self.neighbour_label, 2 * self.arc]
        self.label_way = BlockMLP(config, columns, sizes.out, config.bias)
        self.gate = LabelGate(sizes.label, sizes.out, config.bias) if config.label_gate else None
        self.learns_mixing = config.mixing == "learnt"
        self.from_neighbours_OS = nn.Parameter(torch.eye(sizes.out, sizes.state))
        self.from_itself_OS = nn.Parameter(torch.zeros(sizes.out, sizes.state))
        self.from_neighbours_OS.requires_grad_(self.learns_mixing)
        self.from_itself_OS.requires_grad_(self.learns_mixing and config.own_state)
        if self.learns_mixing:
            # Near the identity all channels would say what all nodes have in common, which swings
            # with the lag of the states and can put every ReLU to rest.
            std = (2 * max(1, sizes.state)) ** -0.5
            nn.init.normal_(self.from_neighbours_OS, std=std)
            if config.own_state:
                nn.init.normal_(self.from_itself_OS, std=std)
        self.output = activation(config.output_activation)
        self.slope = LIPSCHITZ.get(config.output_activation, 1.0)
        # W_1 and W_2 when they were last asked for without a gradient, and what was made of them.
        self._known: tuple[Pair, Pair] | None = None

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        total_NO = self._of_labels(label_NL, batch)
        if self.config.label_scale != 1:
            total_NO = self.config.label_scale * total_NO
        if state_NS.shape[1]:
            neighbours_OS, own_OS = self._bounded()
            own_NS = batch.own(state_NS) if self.config.own_state else state_NS[:, :0]
            blocks = [self._shifted(state_NS, batch), own_NS]
            total_NO = add_products(blocks, [neighbours_OS, own_OS], total_NO)
        result: Tensor = self.output(total_NO)
        return result

    def _of_labels(self, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        alike = batch.own_of(batch.as_distinct(label_NL))
        if isinstance(alike, DistinctRows) and self._is_shared:
            return alike.gather(self._gated(self.label_way(alike.rows), alike.rows))
        return self._gated(self._of_rows(label_NL, batch), batch.own(label_NL))

    def _of_rows(self, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        """b of every node: of its own labels, and of the sums around it where they are seen."""
        if label_NL is not batch.features or label_NL.requires_grad:
            sums = sum_neighbours(label_NL[:, : self.neighbour_label], batch.arcs)
            blocks: list[Tensor | SparseRows] = [
                batch.own(label_NL),
                sums,
                batch.arc_sums[:, : 2 * self.arc],
            ]
        else:
            blocks = batch.surroundings if self.sees_neighbours else [batch.own_labels]
        result: Tensor = self.label_way(*blocks)
        return result

    def _gated(self, values: Tensor, own_labels: Tensor) -> Tensor:
        return values if self.gate is None else values * self.gate(own_labels)

    @property
    def _is_shared(self) -> bool:
        """Whether nodes with the same label get the same from b: nothing else enters it."""
        config = self.config
        drawn = config.norm == "batch" or (self.training and config.dropout > 0)
        return self.neighbour_label + self.arc == 0 and not drawn

    def _shifted(self, state_NS: Tensor, batch: GraphBatch) -> Tensor:
        """N x."""
        loops = self.config.self_loops
        if self.config.operator == "symmetric":
            return GraphShift(batch.arcs, state_NS.dtype, loops)(state_NS)
        summed_NS = sum_neighbours(state_NS, batch.arcs)
        summed_NS = summed_NS + batch.own(state_NS) if loops else summed_NS
        if self.config.operator == "mean":
            return summed_NS / (batch.arcs.in_degree + int(loops)).clamp(min=1).unsqueeze(1)
        inverse_N1 = batch.own(batch.inverse_norm)
        return summed_NS / (1 / inverse_N1 + 1) if loops else summed_NS * inverse_N1

    def state_weights(self) -> list[Tensor]:
        return [self.from_neighbours_OS, self.from_itself_OS]

    def state_gain(self) -> float | None:
        return float(self._gain_of(*self._bounded()).detach())

    def project(self) -> None:
        """Learnt weights have their bound in f_a."""
        if not self.learns_mixing:
            super().project()

    def _bounded(self) -> Pair:
        """W_1 and W_2, divided by what their gain exceeds its bound.

        A step that is shrunk afterwards shrinks all that was learnt before. Here the gradient knows
        of the bound: it turns the weights at the bound, and asks for no growth that is cut away.
        """
        weights = self.from_neighbours_OS, self.from_itself_OS
        if self.gain is None or not self.learns_mixing:
            return weights
        if torch.is_grad_enabled() or not weights[0].is_cpu:
            return self._divided(*weights, self.gain)
        # Between two steps they are asked for again and again, and their norms take half of f_a.
        if self._known is None or not all(map(torch.equal, weights, self._known[0])):
            neighbours, own = (weight.detach().clone() for weight in weights)
            self._known = (neighbours, own), self._divided(neighbours, own, self.gain)
        return self._known[1]

    def _divided(self, neighbours: Tensor, own: Tensor, gain: float) -> Pair:
        scale = gain / self._gain_of(neighbours, own).clamp(min=gain)
        return scale * neighbours, scale * own

    def _gain_of(self, neighbours: Tensor, own: Tensor) -> Tensor:
        # |N| is at most 1: in the Euclidean norm, or for means in the maximum norm over nodes.
        if self.symmetric:
            # The eigenvalues of N lie between -1 and 1, and |μ W_1 + W_2| is convex in μ.
            return self.slope * norm_of_both(own, neighbours)
        return self.slope * (operator_norm(neighbours) + operator_norm(own))
