"""Lagrangian propagation in its plain formulation: what lpgnn is measured against, and its oracle.

As in the authors' public code, here written afresh: the labels at both ends of every arc are laid
out side by side once, the states are gathered beside them in every epoch, h is an MLP on these
wide rows, and a sparse matrix sums its outputs into nodes; another one sums nodes into graphs.
K = 1, G squared, gradient updates, summed losses, f_r an MLP with one hidden layer.

Shapes: N nodes, A arcs, G graphs, S state size, H hidden size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.transitions.arc_mlp import ArcMlp


@dataclass(frozen=True)
class LearningRates:
    theta: float
    state: float
    multiplier: float


class PlainLagrangian:
    """Weights, states and multipliers of one batch, and the three optimisers that move them."""

    def __init__(
        self, batch: GraphBatch, *, state: int, hidden: int, readout: int, lr: LearningRates
    ) -> None:
        source, target = batch.arcs.source, batch.arcs.target
        features = batch.features
        self.batch = batch
        self.constant = torch.cat(
            [features[source], batch.arc_out, batch.arc_in, features[target]], dim=1
        )
        self.arc_to_node = _membership(target, batch.num_nodes).to(features.dtype)
        self.node_to_graph = _membership(batch.graph_of_node, batch.num_graphs).to(features.dtype)
        self.h = nn.Sequential(
            nn.Linear(2 * state + self.constant.shape[1], hidden),
            nn.Tanh(),
            nn.Linear(hidden, state),
        ).to(features.dtype)
        self.f_r = nn.Sequential(
            nn.Linear(state, readout), nn.Tanh(), nn.Linear(readout, batch.num_classes)
        ).to(features.dtype)
        self.x = features.new_zeros(batch.num_nodes, state).requires_grad_()
        self.multiplier = features.new_zeros(batch.num_nodes, 1).requires_grad_()
        theta = [*self.h.parameters(), *self.f_r.parameters()]
        self.optimisers = [
            torch.optim.Adam(theta, lr=lr.theta),
            torch.optim.Adam([self.x], lr=lr.state),
            torch.optim.Adam([self.multiplier], lr=lr.multiplier, maximize=True),
        ]

    def transition(self) -> Tensor:
        """f_a(x), (N, S)"""
        arcs = self.batch.arcs
        # Indexing with brackets: measured faster than index_select, its backward pass included.
        rows = torch.cat([self.x[arcs.source], self.x[arcs.target], self.constant], dim=1)
        found: Tensor = torch.sparse.mm(self.arc_to_node, self.h(rows))
        return found

    def scores(self, transition_NS: Tensor) -> Tensor:
        """Class scores of every graph."""
        result: Tensor = self.f_r(torch.sparse.mm(self.node_to_graph, transition_NS))
        return result

    def lagrangian(self) -> tuple[Tensor, Tensor]:
        """The Lagrangian, and the class scores."""
        transition_NS = self.transition()
        scores = self.scores(transition_NS)
        loss = nn.functional.cross_entropy(scores, self.batch.targets, reduction="sum")
        constraints = self.multiplier * (self.x - transition_NS).square()
        return loss + constraints.sum(), scores

    def train_epoch(self) -> float:
        """One step of all three optimisers; returns the training accuracy."""
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        lagrangian, scores = self.lagrangian()
        lagrangian.backward()
        for optimiser in self.optimisers:
            optimiser.step()
        return (scores.argmax(dim=1) == self.batch.targets).double().mean().item()

    @torch.no_grad()
    def copy_weights(self, transition: ArcMlp, readout: nn.Module) -> None:
        """The weights of lpgnn's own modules; only the order of the columns of h differs."""
        x_u, l_u, arc_out, arc_in, x_v, l_v = transition.h.blocks()
        first = self.h[0]
        assert isinstance(first, nn.Linear)
        first.weight.copy_(torch.cat([x_u, x_v, l_u, arc_out, arc_in, l_v], dim=1))
        first.bias.copy_(transition.h.first.bias)
        self.h[2].load_state_dict(transition.h.last.state_dict())
        for mine, other in zip(self.f_r.parameters(), readout.parameters(), strict=True):
            mine.copy_(other)


def _membership(group_of_item: Tensor, groups: int) -> Tensor:
    """The sparse 0/1 matrix (groups, items) whose product with the items' rows sums each group."""
    items = torch.arange(group_of_item.numel(), device=group_of_item.device)
    return torch.sparse_coo_tensor(
        torch.stack([group_of_item, items]),
        torch.ones(group_of_item.numel(), device=group_of_item.device),
        size=(groups, group_of_item.numel()),
        check_invariants=True,
        is_coalesced=True,
    )
