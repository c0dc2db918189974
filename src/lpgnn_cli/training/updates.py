"""How states and multipliers of a batch move while theta is held: the test phase, and one_shot.

Every rule has the same shape: it owns the variables of one batch, `relax()` takes one step and
returns the residuals it started from, and `solve` repeats it until each graph has settled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import (
    AndersonConfig,
    InsensitiveConstraintConfig,
    IterationConfig,
    LagrangianConfig,
)
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.constraints import Constraint, build_constraint, lin_eps
from lpgnn_cli.model.network import Network, graph_violation, residuals
from lpgnn_cli.training.optim import build_optimiser, scale_lr
from lpgnn_cli.training.variables import Variables


def constraint_term(
    differences: Sequence[Tensor],
    multipliers: Sequence[Tensor],
    g: Constraint,
    rho: float,
    reduction: str,
) -> Tensor:
    """sum over nodes v and layers k of lambda_v G(x_v - f_a,v) + rho/2 |x_v - f_a,v|^2."""
    total = differences[0].new_zeros(())
    for difference, multiplier in zip(differences, multipliers, strict=True):
        layer = (multiplier * g(difference)).sum()
        if rho > 0:
            layer = layer + 0.5 * rho * difference.square().sum()
        total = total + (layer / difference.shape[0] if reduction == "mean" else layer)
    return total


class StateUpdates(ABC):
    """Moves the variables of one batch towards x = f_a(x)."""

    def __init__(self, network: Network, batch: GraphBatch, config: TrainConfig) -> None:
        assert isinstance(config.propagation, LagrangianConfig)
        self.network = network
        self.batch = batch
        self.propagation = config.propagation
        self.variables = Variables.start(network, batch, config.propagation)

    @abstractmethod
    def relax(self) -> list[Tensor]:
        """One step with theta frozen; returns x - f_a(x) as it was before the step."""

    def remaining(self, residual: list[Tensor]) -> list[Tensor]:
        """What the rule still wants to remove of x - f_a(x)."""
        return residual

    def scale_lr(self, scale: float) -> None:
        """Learning rates as configured, times `scale`; a rule without any has nothing to do."""
        return None

    def state_dict(self) -> dict[str, Any]:
        return {"variables": self.variables.state_dict()}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.variables.load_state_dict(saved["variables"])


class GradientUpdates(StateUpdates):
    """The paper's rule: x descends and lambda ascends on the constraint term."""

    def __init__(self, network: Network, batch: GraphBatch, config: TrainConfig) -> None:
        super().__init__(network, batch, config)
        self.g = build_constraint(config.g)
        self.band = config.g.eps if isinstance(config.g, InsensitiveConstraintConfig) else 0.0
        lr, optim = config.lr, config.optim
        self.state_optimiser = build_optimiser(optim, self.variables.states, lr.state)
        self.multiplier_optimiser = build_optimiser(
            optim,
            self.variables.multipliers,
            lr.state if lr.multiplier is None else lr.multiplier,
            maximize=True,
        )

    def relax(self) -> list[Tensor]:
        x, multipliers = self.variables.states, self.variables.multipliers
        with torch.enable_grad():
            residual = residuals(x, self.network.transit(x, self.batch))
            # Summed whatever training does: a mean would tie a graph to the others beside it.
            term = constraint_term(residual, multipliers, self.g, self.propagation.rho, "sum")
        gradients = torch.autograd.grad(term, [*x, *multipliers])
        for variable, gradient in zip([*x, *multipliers], gradients, strict=True):
            variable.grad = gradient
        self.state_optimiser.step()
        self.multiplier_optimiser.step()
        return [r.detach() for r in residual]

    def remaining(self, residual: list[Tensor]) -> list[Tensor]:
        """An eps-insensitive G is content inside its band."""
        return [lin_eps(r, self.band) for r in residual]

    def scale_lr(self, scale: float) -> None:
        scale_lr(self.state_optimiser, scale)
        scale_lr(self.multiplier_optimiser, scale)

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "state_optimiser": self.state_optimiser.state_dict(),
            "multiplier_optimiser": self.multiplier_optimiser.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        self.state_optimiser.load_state_dict(saved["state_optimiser"])
        self.multiplier_optimiser.load_state_dict(saved["multiplier_optimiser"])


class IterationUpdates(StateUpdates):
    """Damped fixed-point iteration: x <- x + damping (f_a(x) - x)."""

    def __init__(
        self, network: Network, batch: GraphBatch, config: TrainConfig, damping: float
    ) -> None:
        super().__init__(network, batch, config)
        self.damping = damping

    @torch.no_grad()
    def relax(self) -> list[Tensor]:
        x = self.variables.states
        residual = residuals(x, self.network.transit(x, self.batch))
        for state, difference in zip(x, residual, strict=True):
            state.sub_(self.damping * difference)
        return residual


class AndersonUpdates(StateUpdates):
    """Anderson acceleration: past iterates of each graph, mixed for the least residual."""

    def __init__(
        self, network: Network, batch: GraphBatch, config: TrainConfig, damping: float, memory: int
    ) -> None:
        super().__init__(network, batch, config)
        self.damping = damping
        self.memory = memory
        self.past_states: list[Tensor] = []
        self.past_residuals: list[Tensor] = []

    @torch.no_grad()
    def relax(self) -> list[Tensor]:
        x = self.variables.states
        residual = residuals(x, self.network.transit(x, self.batch))
        self.past_states = [*self.past_states, torch.cat(x, dim=1).clone()][-self.memory :]
        self.past_residuals = [*self.past_residuals, torch.cat(residual, dim=1)][-self.memory :]
        x_MNS, r_MNS = torch.stack(self.past_states), torch.stack(self.past_residuals)
        weight_MN1 = self._weights(r_MNS)[:, self.batch.graph_of_node, None]
        mixed = (weight_MN1 * (x_MNS - self.damping * r_MNS)).sum(dim=0)
        for state, value in zip(x, mixed.split([s.shape[1] for s in x], dim=1), strict=True):
            state.copy_(value)
        return residual

    def _weights(self, r_MNS: Tensor) -> Tensor:
        """Weights (M, G) that sum to 1 and make the mixed residual of each graph least."""
        memory, graphs = r_MNS.shape[0], self.batch.num_graphs
        gram_NMM = torch.einsum("ins,jns->nij", r_MNS, r_MNS)
        gram = gram_NMM.new_zeros(graphs, memory, memory)
        gram = gram.index_add(0, self.batch.graph_of_node, gram_NMM)
        size = torch.diagonal(gram, dim1=1, dim2=2).mean(dim=1).clamp(min=1e-30)
        ridge = 1e-5 * torch.eye(memory, dtype=gram.dtype, device=gram.device)
        ones = gram.new_ones(graphs, memory, 1)
        weights = torch.linalg.solve(gram / size[:, None, None] + ridge, ones).squeeze(-1)
        normalised: Tensor = weights / weights.sum(dim=1, keepdim=True)
        return normalised.T

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "past_states": list(self.past_states),
            "past_residuals": list(self.past_residuals),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        self.past_states = [t.to(self.batch.features) for t in saved["past_states"]]
        self.past_residuals = [t.to(self.batch.features) for t in saved["past_residuals"]]


class FrozenUpdates(StateUpdates):
    """The control: x stays zero, and no constraint is asked to hold."""

    def relax(self) -> list[Tensor]:
        return []


def inference_updates(network: Network, batch: GraphBatch, config: TrainConfig) -> StateUpdates:
    """The rule by which unseen graphs find their states (`inference=`).

    `lagrangian` is the paper's: the rule of training itself, with theta frozen.
    """
    inference, propagation = config.inference, config.propagation
    assert isinstance(propagation, LagrangianConfig)
    if propagation.states == "frozen":
        return FrozenUpdates(network, batch, config)
    if isinstance(inference, AndersonConfig):
        return AndersonUpdates(network, batch, config, inference.damping, inference.memory)
    if isinstance(inference, IterationConfig):
        return IterationUpdates(network, batch, config, inference.damping)
    if propagation.updates == "one_shot":
        return IterationUpdates(network, batch, config, propagation.damping)
    return GradientUpdates(network, batch, config)


@dataclass(frozen=True)
class SolveStats:
    """How a solve ended."""

    steps: int
    violation: float
    """The mean over graphs of what `remaining` leaves of their violation."""
    converged: float
    """The share of graphs whose violation fell below the tolerance."""


def solve(updates: StateUpdates, steps: int, tolerance: float) -> SolveStats:
    """Relax until every graph has settled, and leave the best states of each graph in place.

    A graph settles the first time its violation is below the tolerance and is left alone from
    then on, so what is found for it does not depend on the graphs beside it.
    """
    batch, states = updates.batch, updates.variables.states
    least = torch.full((batch.num_graphs,), torch.inf, device=batch.features.device)
    settled = torch.zeros_like(least, dtype=torch.bool)
    best = [x.detach().clone() for x in states]
    taken = 0
    while taken < steps and not bool(settled.all()):
        taken += 1
        before = [x.detach().clone() for x in states]
        residual = updates.relax()
        if not residual:
            return SolveStats(steps=0, violation=0.0, converged=1.0)
        violation = graph_violation(updates.remaining(residual), batch).to(least)
        better = (violation < least) & ~settled
        least = torch.where(better, violation, least)
        settled |= least < tolerance
        keep = better[batch.graph_of_node, None]
        best = [torch.where(keep, new, old) for new, old in zip(before, best, strict=True)]
    with torch.no_grad():
        for state, value in zip(states, best, strict=True):
            state.copy_(value)
    return SolveStats(
        steps=taken,
        violation=float(least.mean()),
        converged=float(settled.sum()) / batch.num_graphs,
    )
