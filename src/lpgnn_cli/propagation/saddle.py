"""The constraint term of the Lagrangian, and the search for its saddle with theta held."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.constraints import Constraint, beyond_band, build_constraint
from lpgnn_cli.propagation.optim import build_optimiser
from lpgnn_cli.propagation.solvers import Function, Rule, States, residuals
from lpgnn_cli.propagation.variables import MakeZeros, Variables


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
        values = g(difference)
        if multiplier.shape[1] == 1:
            # One per node: summed first, it multiplies nothing of the size of the states.
            values = values.sum(dim=1, keepdim=True)
        layer = (multiplier * values).sum()
        if rho > 0:
            layer = layer + 0.5 * rho * difference.square().sum()
        total = total + (layer / difference.shape[0] if reduction == "mean" else layer)
    return total


def saddle_variables(
    config: TrainConfig,
    zero_states: Sequence[Tensor],
    batch: GraphBatch,
    zeros: MakeZeros = Tensor.new_zeros,
) -> Variables:
    """x and lambda at their start, each with its optimiser: x descends, lambda ascends."""
    settings = config.propagation
    assert isinstance(settings, LagrangianConfig)
    lr = config.lr
    ascent = lr.state if lr.multiplier is None else lr.multiplier
    return Variables.start(
        zero_states,
        batch,
        multiplier=settings.multiplier_start,
        per_element=settings.multiplier == "element",
        move_states=partial(build_optimiser, config.optim, lr=lr.state)
        if settings.state_step == "optimiser"
        else None,
        move_multipliers=partial(build_optimiser, config.optim, lr=ascent, maximize=True),
        zeros=zeros,
    )


def differentiate(
    objective: Tensor,
    constraints: Tensor,
    x: Sequence[Tensor],
    others: Sequence[Tensor],
    supervise_states: bool,
) -> None:
    """Leave its gradient in x and in all others (theta, lambda): one backward pass through f_a.

    Where x sees the constraints alone, what goes back through f_a is not the same for both: it is
    -lambda G' for x, and dloss/df_a - lambda G' for theta. Then there are two passes, and neither
    computes what belongs to the other.
    """
    if supervise_states:
        objective.backward()
        return
    constraints.backward(inputs=list(x), retain_graph=True)
    objective.backward(inputs=list(others))


def step_states(variables: Variables, config: TrainConfig, nodes: int | None = None) -> None:
    """Let x descend by its gradient, in the way that the config asks for; a mean of constraints
    was one over so many nodes, all of these unless it is said."""
    settings, states = config.propagation, variables.states
    assert isinstance(settings, LagrangianConfig)
    if settings.state_step == "optimiser":
        states.step()
        return
    # 2 lambda + rho is the curvature of the squared constraint along x: divided by it, a step of
    # size 1 goes to x = f_a(x) but for what the loss pulls, however large lambda has become. Adam
    # would move by its rate whatever the gradient, and so bury a weak signal in noise.
    with torch.no_grad():
        for x, multiplier in zip(states.values, variables.multipliers.values, strict=True):
            if x.grad is None:
                continue
            curvature = (2 * multiplier + settings.rho).clamp(min=1.0)
            share = (nodes or x.shape[0]) if settings.constraint_reduction == "mean" else 1
            x.sub_(config.lr.state * share * x.grad / curvature)


class Saddle(Rule):
    """The paper's test phase: x descends and lambda ascends on the constraint term alone."""

    def __init__(
        self, config: TrainConfig, zero_states: Sequence[Tensor], batch: GraphBatch
    ) -> None:
        assert isinstance(config.propagation, LagrangianConfig)
        self.config = config
        self.rho = config.propagation.rho
        self.g = build_constraint(config.g)
        self.variables = saddle_variables(config, zero_states, batch)

    def advance(self, f: Function, x: States) -> tuple[States, States]:
        states, multipliers = self.variables.states, self.variables.multipliers
        states.set(x)
        with torch.enable_grad():
            residual = residuals(states.values, f(states.values))
            # Summed whatever training does: a mean would tie a graph to the others beside it.
            term = constraint_term(residual, multipliers.values, self.g, self.rho, "sum")
        moved = [*states.values, *multipliers.values]
        for variable, gradient in zip(moved, torch.autograd.grad(term, moved), strict=True):
            variable.grad = gradient
        step_states(self.variables, self.config)
        multipliers.step()
        return [x.detach().clone() for x in states.values], [r.detach() for r in residual]

    def remaining(self, residual: States) -> States:
        """An eps-insensitive G is content inside its band."""
        return [beyond_band(r, self.config.g) for r in residual]

    def scale_lr(self, scale: float) -> None:
        self.variables.scale_lr(scale)

    def state_dict(self) -> dict[str, Any]:
        return self.variables.state_dict()

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.variables.load_state_dict(saved)
