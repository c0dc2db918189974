"""Both update rules end in the saddle point, whose multipliers are known in closed form."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from lpgnn_cli.config.model import FixedPointConfig
from lpgnn_cli.data.batch import TargetLevel
from lpgnn_cli.model.constraints import build_constraint
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.propagation.fixed_point import FixedPoint
from lpgnn_cli.propagation.one_shot import OneShot, absolute, relative
from lpgnn_cli.propagation.optim import build_optimiser
from lpgnn_cli.propagation.saddle import constraint_term
from lpgnn_cli.propagation.solvers import residuals

from ..conftest import present
from .conftest import MakeBatch, MakeConfig, MakeLearner

EXACT = FixedPointConfig(
    name="fixed_point",
    loss_reduction="sum",
    norm="none",
    upper="all",
    gain=None,
    gain_held_by="weights",
    gain_penalty=1.0,
    max_iterations=500,
    tolerance=1e-14,
    backward="unrolled",
    solver="damped",
    damping=1.0,
    memory=1,
)


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_descent_and_ascent_find_the_saddle_of_a_convex_problem(
    rho: float, make_config: MakeConfig
) -> None:
    """min |x - a|^2 / 2  subject to  x = M x + c: both conditions are linear systems."""
    config = make_config("optim=sgd", "g=lin")
    torch.manual_seed(0)
    double = torch.float64
    m, c, a = (torch.randn(4, columns, dtype=double) for columns in (4, 1, 1))
    m = 0.2 * m
    x = torch.zeros(4, 1, dtype=double, requires_grad=True)
    multiplier = torch.zeros(4, 1, dtype=double, requires_grad=True)
    down = build_optimiser(config.optim, [x], lr=0.2)
    up = build_optimiser(config.optim, [multiplier], lr=0.2, maximize=True)
    g = build_constraint(config.g)

    for _ in range(400):
        loss = 0.5 * (x - a).square().sum()
        term = constraint_term([x - (m @ x + c)], [multiplier], g, rho, "sum")
        down.zero_grad()
        up.zero_grad()
        (loss + term).backward()
        down.step()
        up.step()

    constraint = torch.eye(4, dtype=double) - m
    at_rest = torch.linalg.solve(constraint, c)
    adjoint = torch.linalg.solve(constraint.T, a - at_rest)
    torch.testing.assert_close(x.detach(), at_rest, rtol=0, atol=1e-6)
    torch.testing.assert_close(multiplier.detach(), adjoint, rtol=0, atol=1e-6)
    assert float((x - (m @ x + c)).detach().abs().max()) < 1e-6


def test_weight_decay_is_for_theta_alone(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    learner = make_learner(make_config("optim.weight_decay=0.1"), train=make_batch())
    propagation = learner.propagation
    assert propagation.theta.param_groups[0]["weight_decay"] == 0.1
    states = present(learner.variables.states.optimiser).param_groups[0]
    multipliers = present(learner.variables.multipliers.optimiser).param_groups[0]
    assert (states["weight_decay"], multipliers["weight_decay"]) == (0, 0)
    assert multipliers["maximize"]
    assert not states["maximize"]


CASES = {
    "linear": ["aggregator.hidden=[]"],
    "tanh": ["aggregator.hidden=[7]"],
    "state": ["aggregator.hidden=[7]", "readout.source=state"],
    "two layers": ["aggregator.hidden=[7]", "layers=2", "state=[3,4]", "readout.layers=all"],
    "handed up": ["layers=2", "state=[3,4]", "propagation.hand_up=transition"],
}


@pytest.mark.parametrize("level", ["graph", "node"])
@pytest.mark.parametrize("case", CASES)
def test_one_shot_converges_to_the_gradient_through_the_fixed_point(
    case: str,
    level: TargetLevel,
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
) -> None:
    batch = make_batch(level=level)
    config = make_config(
        "aggregator=avg",
        "state=[3]",
        "aggregator.activation=tanh",
        "propagation.updates=one_shot",
        "propagation.damping=1.0",
        "readout=linear",
        *CASES[case],
    )
    learner = make_learner(config, train=batch)
    assert isinstance(learner.propagation, OneShot)
    # Theta is held, so that x and lambda can converge.
    learner.propagation.step_theta = lambda: None
    for _ in range(120):
        learner.train_epoch(1, batch)
    network, variables = learner.network, learner.propagation.variables
    one_shot = {name: present(p.grad).clone() for name, p in network.named_parameters()}

    # GNN*: everything unrolled.
    unrolled = copy.deepcopy(network)
    star = FixedPoint(unrolled, replace(config, propagation=EXACT), {})
    states, transits = star.propagate(batch)
    part = learner.parts["train"]
    supervised_loss(part, unrolled.read(states, transits, batch), "sum").backward()
    for x, state in zip(variables.states.values, states, strict=True):
        torch.testing.assert_close(x.detach(), state.detach(), rtol=0, atol=1e-9)
    for name, parameter in unrolled.named_parameters():
        torch.testing.assert_close(one_shot[name], parameter.grad, rtol=1e-7, atol=1e-9)

    # The adjoint, from the whole Jacobian.
    at = [s.detach().requires_grad_() for s in states]
    sizes = [s.shape for s in at]

    def split(flat: Tensor) -> list[Tensor]:
        parts = flat.split([s.numel() for s in sizes])
        return [part.view(s) for part, s in zip(parts, sizes, strict=True)]

    def transit(flat: Tensor) -> Tensor:
        return torch.cat([f.flatten() for f in learner.propagation.transit(split(flat), batch)])

    def loss(x_flat: Tensor, f_flat: Tensor) -> Tensor:
        scores = network.read(split(x_flat), split(f_flat), batch)
        return supervised_loss(part, scores, "sum")

    flat = torch.cat([x.detach().flatten() for x in at])
    jacobian = torch.autograd.functional.jacobian(transit, flat)
    x_leaf, f_leaf = flat.clone().requires_grad_(), transit(flat).detach().requires_grad_()
    of_x, of_f = torch.autograd.grad(
        loss(x_leaf, f_leaf), [x_leaf, f_leaf], allow_unused=True, materialize_grads=True
    )
    system = torch.eye(flat.numel(), dtype=flat.dtype) - jacobian.T
    adjoint = torch.linalg.solve(system, of_x + jacobian.T @ of_f)
    pairs = zip(variables.multipliers.values, variables.states.values, strict=True)
    # They are kept relative to the size of the state.
    found = torch.cat([(m / x.norm(dim=1, keepdim=True)).detach().flatten() for m, x in pairs])
    assert float(adjoint.abs().max()) > 1e-3
    torch.testing.assert_close(found, adjoint, rtol=1e-7, atol=1e-9)


def test_one_shot_states_never_see_a_label(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """Other targets, the same weights: other multipliers, but the same states."""
    config = make_config("aggregator=avg", "state=[3]", "propagation.updates=one_shot")
    ends = []
    for shift in (0, 1):
        batch = make_batch()
        learner = make_learner(config, train=batch)
        batch.targets.add_(shift).remainder_(2)
        learner.propagation.step_theta = lambda: None
        for _ in range(5):
            learner.train_epoch(1, batch)
        ends.append(learner.variables)
    assert torch.equal(ends[0].states.values[0], ends[1].states.values[0])
    assert not torch.equal(ends[0].multipliers.values[0], ends[1].multipliers.values[0])


def test_gradient_training_of_a_network_satisfies_its_constraints(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """The whole saddle-point search: violation falls by far and the loss with it."""
    batch = make_batch((5, 6, 4, 7), seed=2)
    config = make_config(
        "aggregator=avg",
        "state=[3]",
        "aggregator.hidden=[8]",
        "g=lin",
        "propagation.multiplier=element",
        "propagation.rho=5",
        "lr={theta:0.005,state:0.02,multiplier:0.02}",
    )
    learner = make_learner(config, train=batch)
    history = [learner.train_epoch(epoch, batch) for epoch in range(1, 601)]
    assert float(history[-1]["train/loss"]) < 0.1 * float(history[0]["train/loss"])
    variables = learner.variables
    residual = residuals(
        variables.states.values, learner.propagation.transit(variables.states.values, batch)
    )
    assert float(residual[0].detach().abs().mean()) < 0.02
    assert float(torch.cat(variables.states.values).detach().abs().mean()) > 0.1, (
        "not by shrinking everything"
    )


def test_multipliers_are_kept_relative_to_states_however_weak_these_are() -> None:
    state = torch.tensor([[3e-25, 4e-25], [0.0, 0.0], [3.0, 4.0]])
    multiplier = torch.tensor([[2e24, 0.0], [7.0, 7.0], [1.0, 2.0]])
    kept = relative(state, multiplier)
    torch.testing.assert_close(kept, torch.tensor([[1.0, 0.0], [0.0, 0.0], [5.0, 10.0]]))
    (back,) = absolute([kept], [state])
    torch.testing.assert_close(back, torch.tensor([[2e24, 0.0], [0.0, 0.0], [1.0, 2.0]]))
