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
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator, operator_norm
from lpgnn_cli.model.transitions.shift import GraphShift
from lpgnn_cli.ops import DistinctRows, SparseRows, sum_incoming, sum_neighbours

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


@aggregator("diffusion", DiffusionConfig)
class Diffusion(Transition):
    """W_1 mixes what comes from neighbours, W_2 what is a node's own."""

    of_some_nodes = True

    def __init__(self, config: DiffusionConfig, sizes: Sizes) -> None:
        super().__init__()
        self.config = config
        sees_neighbours = config.neighbour_labels and not sizes.own_label_only
        self.neighbour_label = sizes.label if sees_neighbours else 0
        self.arc = sizes.arc if sees_neighbours else 0
        columns = [sizes.label, self.neighbour_label, self.arc, self.arc]
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

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        total_NO = self.config.label_scale * self._of_labels(label_NL, batch)
        if state_NS.shape[1]:
            neighbours_OS, own_OS = self._bounded()
            total_NO = total_NO + self._shifted(state_NS, batch) @ neighbours_OS.t()
            if self.config.own_state:
                total_NO = total_NO + batch.own(state_NS) @ own_OS.t()
        result: Tensor = self.output(total_NO)
        return result

    def _of_labels(self, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        alike = batch.own_of(batch.as_distinct(label_NL))
        if isinstance(alike, DistinctRows) and self._is_shared:
            none = alike.rows[:, :0]
            of_rows = self.label_way(alike.rows, none, none, none)
            return alike.gather(self._gated(of_rows, alike.rows))
        own, sums = self._labels(label_NL, batch)
        result: Tensor = self.label_way(
            own,
            sums,
            sum_incoming(batch.arc_out[:, : self.arc], batch.arcs),
            sum_incoming(batch.arc_in[:, : self.arc], batch.arcs),
        )
        return self._gated(result, batch.own(label_NL))

    def _gated(self, values: Tensor, own_labels: Tensor) -> Tensor:
        return values if self.gate is None else values * self.gate(own_labels)

    @property
    def _is_shared(self) -> bool:
        """Whether nodes with the same label get the same from b: nothing else enters it."""
        config = self.config
        drawn = config.norm == "batch" or (self.training and config.dropout > 0)
        return self.neighbour_label + self.arc == 0 and not drawn

    def _labels(
        self, label_NL: Tensor, batch: GraphBatch
    ) -> tuple[Tensor | SparseRows, Tensor | SparseRows]:
        """The node's own, and the sums over its neighbours where they are seen."""
        if label_NL is not batch.features or label_NL.requires_grad:
            return batch.own(label_NL), sum_neighbours(
                label_NL[:, : self.neighbour_label], batch.arcs
            )
        none = label_NL[:, :0]
        return batch.own_labels, batch.neighbour_labels if self.neighbour_label else none

    def _shifted(self, state_NS: Tensor, batch: GraphBatch) -> Tensor:
        """N x."""
        loops = self.config.self_loops
        if self.config.operator == "symmetric":
            return GraphShift(batch.arcs, state_NS.dtype, loops)(state_NS)
        summed_NS = sum_neighbours(state_NS, batch.arcs)
        summed_NS = summed_NS + batch.own(state_NS) if loops else summed_NS
        if self.config.operator == "mean":
            return summed_NS / (batch.arcs.in_degree + int(loops)).clamp(min=1).unsqueeze(1)
        return summed_NS / (1 / batch.own(batch.inverse_norm) + int(loops))

    def state_weights(self) -> list[Tensor]:
        return [self.from_neighbours_OS, self.from_itself_OS]

    def state_gain(self) -> Tensor | None:
        return self._gain_of(*self._bounded())

    def project(self) -> None:
        """Learnt weights have their bound in f_a."""
        if not self.learns_mixing:
            super().project()

    def _bounded(self) -> tuple[Tensor, Tensor]:
        """W_1 and W_2, divided by what their gain exceeds its bound.

        A step that is shrunk afterwards shrinks all that was learnt before. Here the gradient knows
        of the bound: it turns the weights at the bound, and asks for no growth that is cut away.
        """
        neighbours, own = self.from_neighbours_OS, self.from_itself_OS
        if self.gain is None or not self.learns_mixing:
            return neighbours, own
        scale = self.gain / self._gain_of(neighbours, own).clamp(min=self.gain)
        return scale * neighbours, scale * own

    def _gain_of(self, neighbours: Tensor, own: Tensor) -> Tensor:
        # |N| is at most 1: in the Euclidean norm, or for means in the maximum norm over nodes.
        if self.symmetric:
            # The eigenvalues of N lie between -1 and 1, and |μ W_1 + W_2| is convex in μ.
            ends = [operator_norm(own + neighbours), operator_norm(own - neighbours)]
            return self.slope * torch.stack(ends).max()
        return self.slope * (operator_norm(neighbours) + operator_norm(own))
