"""Solving x = f(x) graph by graph: damped iteration and Anderson acceleration.

A rule makes the next iterate out of the last one, and `solve` repeats it until every graph has
settled. GNN*, its adjoint, the test phase and the one-shot rule all come here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch

# One tensor per layer, with one row per node.
States = list[Tensor]
Function = Callable[[States], Sequence[Tensor]]
# The size (G,) of a residual, graph by graph.
Measure = Callable[[States], Tensor]


# Of a relative solve: how much larger a violation may be and still count as no worse.
PLATEAU = 1.01


@dataclass(frozen=True)
class SolveStats:
    """How a solve ended."""

    steps: int
    violation: float
    """The mean over graphs of the least violation that was seen."""
    converged: float
    """The share of graphs whose violation came within the tolerance."""


@dataclass(frozen=True)
class Solution:
    states: States
    # x - f(x) at these very states, where the last evaluation was made there.
    residual: States | None
    stats: SolveStats


class Rule(ABC):
    """Makes iterates; what it remembers of past ones goes on from call to call."""

    @abstractmethod
    def advance(self, f: Function, x: States) -> tuple[States, States]:
        """The iterate after x, and x - f(x)."""

    def remaining(self, residual: States) -> States:
        """What the rule still wants to remove of x - f(x)."""
        return residual

    def scale_lr(self, scale: float) -> None:
        """Learning rates as configured, times `scale`; most rules have none."""
        return None

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        return None


class Damped(Rule):
    """x <- x + damping (f(x) - x); with a damping of 1 the plain iteration x <- f(x)."""

    def __init__(self, damping: float = 1.0) -> None:
        self.damping = damping

    def advance(self, f: Function, x: States) -> tuple[States, States]:
        target = f(x)
        moved = [towards(a, b, self.damping) for a, b in zip(x, target, strict=True)]
        return moved, [r.detach() for r in residuals(x, target)]


class Anderson(Rule):
    """Past iterates of each graph, mixed for the least residual."""

    def __init__(self, batch: GraphBatch, damping: float, memory: int) -> None:
        self.graph_of_node = batch.graph_of_node
        self.num_graphs = batch.num_graphs
        self.damping = damping
        self.memory = memory
        self.past_states: list[Tensor] = []
        self.past_residuals: list[Tensor] = []

    def advance(self, f: Function, x: States) -> tuple[States, States]:
        residual = residuals(x, f(x))
        self.past_states = [*self.past_states, torch.cat(x, dim=1)][-self.memory :]
        self.past_residuals = [*self.past_residuals, torch.cat(residual, dim=1)][-self.memory :]
        x_MNS, r_MNS = torch.stack(self.past_states), torch.stack(self.past_residuals)
        weight_MN1 = self._weights(r_MNS.detach())[:, self.graph_of_node, None]
        mixed = (weight_MN1 * (x_MNS - self.damping * r_MNS)).sum(dim=0)
        moved = list(mixed.split([state.shape[1] for state in x], dim=1))
        return moved, [r.detach() for r in residual]

    def _weights(self, r_MNS: Tensor) -> Tensor:
        """Weights (M, G) that sum to 1 and make the mixed residual of each graph least."""
        memory = r_MNS.shape[0]
        gram_NMM = torch.einsum("ins,jns->nij", r_MNS, r_MNS)
        gram = gram_NMM.new_zeros(self.num_graphs, memory, memory)
        gram = gram.index_add(0, self.graph_of_node, gram_NMM)
        size = torch.diagonal(gram, dim1=1, dim2=2).mean(dim=1).clamp(min=1e-30)
        ridge = 1e-5 * torch.eye(memory, dtype=gram.dtype, device=gram.device)
        ones = gram.new_ones(self.num_graphs, memory, 1)
        weights = torch.linalg.solve(gram / size[:, None, None] + ridge, ones).squeeze(-1)
        normalised: Tensor = weights / weights.sum(dim=1, keepdim=True)
        return normalised.T

    def state_dict(self) -> dict[str, Any]:
        return {"states": list(self.past_states), "residuals": list(self.past_residuals)}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        device = self.graph_of_node.device
        self.past_states = [past.to(device) for past in saved["states"]]
        self.past_residuals = [past.to(device) for past in saved["residuals"]]


def solve(
    f: Function,
    x: States,
    batch: GraphBatch,
    tolerance: float,
    steps: int,
    rule: Rule,
    *,
    measure: Measure | None = None,
    differentiable: bool = False,
    relative: bool = False,
) -> Solution:
    """Iterate until every graph has settled: until its violation is within the tolerance.

    In a `relative` solve no node of it may want to move by more than that share of its state: a
    weak signal that has just arrived somewhere is news, however small beside the other nodes.

    A graph is left alone from then on, so what is found for it does not depend on the graphs
    beside it. A graph that never settles ends at its best iterate, or, in a `differentiable`
    solve, at its last one: gradients then go through the whole way there.
    """
    measure = measure or (lambda residual: graph_violation(residual, batch))
    least = x[0].new_full((batch.num_graphs,), torch.inf)
    settled = torch.zeros_like(least, dtype=torch.bool)
    best, residual_there = list(x), None
    taken = 0
    while taken < steps:
        taken += 1
        following, residual = rule.advance(f, x)
        violation = measure(rule.remaining(residual)).to(least)
        # News that are too weak to be seen in the violation are none the worse for it.
        better = (violation <= PLATEAU * least if relative else violation < least) & ~settled
        least = torch.where(better, violation.minimum(least), least)
        if relative:
            settled |= graph_news(rule.remaining(residual), x, batch) <= tolerance
        else:
            settled |= least <= tolerance
        if differentiable:
            if bool(settled.all()):
                residual_there = residual
                break
            rests = settled[batch.graph_of_node, None]
            x = [torch.where(rests, old, new) for old, new in zip(x, following, strict=True)]
        else:
            keep = better[batch.graph_of_node, None]
            best = [torch.where(keep, new, old) for new, old in zip(x, best, strict=True)]
            if bool(settled.all()):
                break
            x = following
    stats = SolveStats(
        steps=taken,
        violation=float(least.mean()),
        converged=float(settled.sum()) / batch.num_graphs,
    )
    return Solution(x if differentiable else best, residual_there, stats)


def towards(x: Tensor, target: Tensor, damping: float) -> Tensor:
    """One damped step; with a damping of 1 the target itself."""
    return target if damping == 1 else x + damping * (target - x)


def residuals(states: Sequence[Tensor], transits: Sequence[Tensor]) -> States:
    """x - f_a(x), layer by layer."""
    return [x - f for x, f in zip(states, transits, strict=True)]


def graph_news(
    differences: Sequence[Tensor], states: Sequence[Tensor], batch: GraphBatch
) -> Tensor:
    """The largest |x_v - f_a,v| / |x_v| over the nodes of each graph, shape (G,)."""
    share = node_news(differences, states)
    return share.new_zeros(batch.num_graphs).scatter_reduce(0, batch.graph_of_node, share, "amax")


def node_news(differences: Sequence[Tensor], states: Sequence[Tensor]) -> Tensor:
    """|x_v - f_a,v| / |x_v| of each node, in the maximum norm."""
    wanted = torch.cat([r.abs() for r in differences], dim=1).amax(dim=1)
    size = torch.cat([x.abs() for x in states], dim=1).amax(dim=1)
    return torch.where(wanted > 0, wanted / size, torch.zeros_like(wanted))


def node_violation(differences: Sequence[Tensor]) -> Tensor:
    """The mean of |x - f_a(x)| over the dimensions and layers of each node."""
    return torch.cat([r.abs() for r in differences], dim=1).mean(dim=1)


def graph_violation(differences: Sequence[Tensor], batch: GraphBatch) -> Tensor:
    """The mean of |x - f_a(x)| over the nodes, dimensions and layers of each graph, shape (G,)."""
    per_node = node_violation(differences)
    total = per_node.new_zeros(batch.num_graphs).index_add(0, batch.graph_of_node, per_node)
    nodes: Tensor = batch.graph_ptr.diff().clamp(min=1)
    return total / nodes
