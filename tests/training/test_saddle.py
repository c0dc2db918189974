"""Both update rules end in the saddle point, whose multipliers are known in closed form."""

from __future__ import annotations

import copy

import pytest
import torch

from lpgnn_cli.config.model import FixedPointConfig
from lpgnn_cli.model.constraints import build_constraint
from lpgnn_cli.model.fixed_point import fixed_points
from lpgnn_cli.model.network import residuals
from lpgnn_cli.training.lagrangian import OneShotLearner
from lpgnn_cli.training.optim import build_optimiser
from lpgnn_cli.training.updates import constraint_term

EXACT = FixedPointConfig(
    name="fixed_point",
    loss_reduction="sum",
    contraction="none",
    contraction_bound=0.9,
    contraction_strength=1.0,
    max_iterations=500,
    tolerance=1e-14,
    backward="unrolled",
    damping=1.0,
)


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_descent_and_ascent_find_the_saddle_of_a_convex_problem(rho, make_config):
    """min |x - a|^2 / 2  subject to  x = M x + c: both conditions are linear systems."""
    config = make_config("optim=sgd", "g=lin")
    torch.manual_seed(0)
    real = {"dtype": torch.float64}
    m, c, a = 0.2 * torch.randn(4, 4, **real), torch.randn(4, 1, **real), torch.randn(4, 1, **real)
    x = torch.zeros(4, 1, **real, requires_grad=True)
    multiplier = torch.zeros(4, 1, **real, requires_grad=True)
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

    constraint = torch.eye(4, **real) - m
    at_rest = torch.linalg.solve(constraint, c)
    adjoint = torch.linalg.solve(constraint.T, a - at_rest)
    torch.testing.assert_close(x.detach(), at_rest, rtol=0, atol=1e-6)
    torch.testing.assert_close(multiplier.detach(), adjoint, rtol=0, atol=1e-6)
    assert float((x - (m @ x + c)).detach().abs().max()) < 1e-6


def test_weight_decay_is_for_theta_alone(make_config, make_batch, make_learner):
    learner = make_learner(make_config("optim.weight_decay=0.1"), train=make_batch())
    assert learner.theta.param_groups[0]["weight_decay"] == 0.1
    for optimiser in (learner.updates.state_optimiser, learner.updates.multiplier_optimiser):
        assert optimiser.param_groups[0]["weight_decay"] == 0
    assert learner.updates.multiplier_optimiser.param_groups[0]["maximize"]
    assert not learner.updates.state_optimiser.param_groups[0]["maximize"]


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
    case, level, make_config, make_batch, make_learner
):
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
    assert isinstance(learner, OneShotLearner)
    learner.step_theta = lambda: None  # theta is held, so that x and lambda can converge
    for _ in range(120):
        learner.train_epoch(1, batch)
    network, variables = learner.network, learner.updates.variables
    one_shot = {name: p.grad.clone() for name, p in network.named_parameters()}

    # GNN*: everything unrolled.
    unrolled = copy.deepcopy(network)
    states, transits = fixed_points(unrolled, batch, EXACT)
    learner.parts["train"].loss(unrolled.read(states, transits, batch), "sum").backward()
    for x, state in zip(variables.states, states, strict=True):
        torch.testing.assert_close(x.detach(), state.detach(), rtol=0, atol=1e-9)
    for name, parameter in unrolled.named_parameters():
        torch.testing.assert_close(one_shot[name], parameter.grad, rtol=1e-7, atol=1e-9)

    # The adjoint, from the whole Jacobian.
    at = [s.detach().requires_grad_() for s in states]
    sizes = [s.shape for s in at]

    def split(flat):
        parts = flat.split([s.numel() for s in sizes])
        return [part.view(s) for part, s in zip(parts, sizes, strict=True)]

    def transit(flat):
        return torch.cat([f.flatten() for f in network.transit(split(flat), batch)])

    def loss(x_flat, f_flat):
        scores = network.read(split(x_flat), split(f_flat), batch)
        return learner.parts["train"].loss(scores, "sum")

    flat = torch.cat([x.detach().flatten() for x in at])
    jacobian = torch.autograd.functional.jacobian(transit, flat)
    x_leaf, f_leaf = flat.clone().requires_grad_(), transit(flat).detach().requires_grad_()
    of_x, of_f = torch.autograd.grad(
        loss(x_leaf, f_leaf), [x_leaf, f_leaf], allow_unused=True, materialize_grads=True
    )
    system = torch.eye(flat.numel(), dtype=flat.dtype) - jacobian.T
    adjoint = torch.linalg.solve(system, of_x + jacobian.T @ of_f)
    found = torch.cat([m.detach().flatten() for m in variables.multipliers])
    assert float(adjoint.abs().max()) > 1e-3
    torch.testing.assert_close(found, adjoint, rtol=1e-7, atol=1e-9)


def test_one_shot_states_never_see_a_label(make_config, make_batch, make_learner):
    """Other targets, the same weights: other multipliers, but the same states."""
    config = make_config("aggregator=avg", "state=[3]", "propagation.updates=one_shot")
    ends = []
    for shift in (0, 1):
        batch = make_batch()
        learner = make_learner(config, train=batch)
        batch.targets.add_(shift).remainder_(2)
        learner.step_theta = lambda: None
        for _ in range(5):
            learner.train_epoch(1, batch)
        ends.append(learner.updates.variables)
    assert torch.equal(ends[0].states[0], ends[1].states[0])
    assert not torch.equal(ends[0].multipliers[0], ends[1].multipliers[0])


def test_gradient_training_of_a_network_satisfies_its_constraints(
    make_config, make_batch, make_learner
):
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
    variables = learner.updates.variables
    residual = residuals(variables.states, learner.network.transit(variables.states, batch))
    assert float(residual[0].detach().abs().mean()) < 0.02
    assert float(torch.cat(variables.states).detach().abs().mean()) > 0.1, (
        "not by shrinking everything"
    )
