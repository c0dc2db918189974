"""The test phase: every graph finds its own states, whatever is evaluated beside it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.propagation import Propagation
from lpgnn_cli.propagation.fixed_point import FixedPoint
from lpgnn_cli.propagation.inference import Follower, inference_rule
from lpgnn_cli.propagation.saddle import Saddle
from lpgnn_cli.propagation.solvers import (
    Anderson,
    Damped,
    Function,
    Rule,
    Solution,
    States,
    graph_violation,
    residuals,
    solve,
)

from .conftest import MakeBatch, MakeConfig, MakeLearner, h_of

RULES: dict[str, tuple[type[Rule], list[str]]] = {
    "lagrangian": (
        Saddle,
        ["inference=lagrangian", "propagation.multiplier_start=5", "lr.state=0.05"],
    ),
    "lagrangian, mean": (
        Saddle,
        [
            "inference=lagrangian",
            "propagation.multiplier_start=5",
            "propagation.constraint_reduction=mean",
            "propagation.rho=1",
            # Adam would not notice that a gradient has been divided by the number of nodes.
            "optim=sgd",
            "lr.state=0.02",
        ],
    ),
    "fixed_point": (Damped, ["inference=fixed_point"]),
    "anderson": (Anderson, ["inference=anderson"]),
    "one_shot": (Damped, ["inference=lagrangian", "propagation.updates=one_shot"]),
}

MakePropagation = Callable[..., Propagation]


@pytest.fixture
def batch(make_batch: MakeBatch) -> GraphBatch:
    """Graphs of other sizes and scales, so that they settle after different numbers of steps."""
    plain = make_batch((5, 9, 3, 7, 6), seed=1)
    scale = torch.tensor([1.0, 8.0, 0.1, 3.0, 0.5], dtype=torch.float64)[plain.graph_of_node]
    return plain.with_features(plain.features * scale[:, None])


@pytest.fixture
def make_propagation(make_config: MakeConfig, make_learner: MakeLearner) -> MakePropagation:
    def make(batch: GraphBatch, *overrides: str) -> Propagation:
        config = make_config("layers=2", "state=[3,2]", *overrides)
        propagation = make_learner(config, train=batch).propagation
        propagation.network.eval()
        return propagation

    return make


def rule_for(propagation: Propagation, batch: GraphBatch) -> tuple[Rule, list[torch.Tensor]]:
    zero = propagation.network.zero_states(batch)
    config = propagation.config
    return inference_rule(config, config.inference, zero, batch), zero


def solved(propagation: Propagation, batch: GraphBatch, steps: int, tolerance: float) -> Solution:
    rule, zero = rule_for(propagation, batch)
    with torch.no_grad():
        return solve(lambda x: propagation.transit(x, batch), zero, batch, tolerance, steps, rule)


@pytest.mark.parametrize("graphs", [[3], [4, 2], [4, 3, 2, 1, 0]], ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_a_prediction_depends_on_its_graph_alone(
    rule: str, graphs: list[int], batch: GraphBatch, make_propagation: MakePropagation
) -> None:
    kind, overrides = RULES[rule]
    propagation = make_propagation(batch, "aggregator=avg", *overrides)
    assert type(rule_for(propagation, batch)[0]) is kind
    inference = propagation.config.inference
    inference.steps, inference.tolerance = 60, 0.02
    chosen = torch.tensor(graphs)
    together, _ = propagation.infer(batch, inference)
    some, _ = propagation.infer(batch.subset(chosen), inference)

    nodes = batch.nodes_of(chosen)
    for x, mine in zip(together.states, some.states, strict=True):
        torch.testing.assert_close(x[nodes], mine, rtol=0, atol=1e-6)
        assert float(mine.abs().max()) > 0.01
    torch.testing.assert_close(together.scores[chosen], some.scores, rtol=0, atol=1e-6)
    assert torch.equal(together.scores[chosen].argmax(1), some.scores.argmax(1))


@pytest.mark.parametrize("rule", RULES)
def test_a_step_in_training_depends_on_its_graph_alone(
    rule: str, batch: GraphBatch, make_propagation: MakePropagation
) -> None:
    """Evaluation states that persist over the epochs move by the same rule."""
    propagation = make_propagation(batch, *RULES[rule][1])
    chosen = torch.tensor([2, 0])
    followers = []
    for graphs in (batch, batch.subset(chosen)):
        followers.append(Follower(*rule_for(propagation, graphs)))
        followers[-1].follow(partial(propagation.transit, batch=graphs), steps=8)
    nodes = batch.nodes_of(chosen)
    for x, mine in zip(*(follower.states for follower in followers), strict=True):
        torch.testing.assert_close(x[nodes], mine, rtol=0, atol=1e-6)
        assert float(mine.abs().max()) > 0


@pytest.mark.parametrize("rule", RULES)
def test_theta_is_frozen_in_the_test_phase(
    rule: str, batch: GraphBatch, make_propagation: MakePropagation
) -> None:
    propagation = make_propagation(batch, *RULES[rule][1])
    before = {name: p.clone() for name, p in propagation.network.named_parameters()}
    solved(propagation, batch, steps=5, tolerance=1e-9)
    for name, parameter in propagation.network.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None


@pytest.mark.parametrize("rule", ["lagrangian", "fixed_point", "anderson"])
def test_solve_gives_the_best_iterate_of_each_graph_and_says_how_it_went(
    rule: str, batch: GraphBatch, make_propagation: MakePropagation
) -> None:
    """Steps so long that the violation goes up and down."""
    propagation = make_propagation(batch, *RULES[rule][1], "lr.state=0.4")
    tolerance, steps = 0.06, 25
    seen: list[list[torch.Tensor]] = []
    chosen, zero = rule_for(propagation, batch)
    advance = chosen.advance

    def watched(f: Function, x: States) -> tuple[States, States]:
        seen.append([state.detach().clone() for state in x])
        return advance(f, x)

    chosen.advance = watched
    with torch.no_grad():
        found = solve(
            lambda x: propagation.transit(x, batch), zero, batch, tolerance, steps, chosen
        )
    stats = found.stats

    def violation(states: list[torch.Tensor]) -> torch.Tensor:
        with torch.no_grad():
            return graph_violation(residuals(states, propagation.transit(states, batch)), batch)

    history = torch.stack([violation(states) for states in seen])
    best = []
    for graph in range(batch.num_graphs):
        below = (history[:, graph] <= tolerance).nonzero().flatten()
        # Left alone once it has settled: later iterates may be better, but depend on the others.
        until = int(below[0]) + 1 if below.numel() else len(seen)
        best.append(int(history[:until, graph].argmin()))
        nodes = batch.nodes_of(torch.tensor([graph]))
        for layer, x in enumerate(found.states):
            assert torch.equal(x[nodes], seen[best[-1]][layer][nodes])
    reached = history[best, range(batch.num_graphs)]
    assert stats.violation == pytest.approx(float(reached.mean()), rel=1e-5)
    assert stats.converged == float((reached <= tolerance).double().mean())
    assert stats.steps == len(seen)
    assert (stats.converged == 1) == (stats.steps < steps)
    if rule == "lagrangian":
        assert any(b < len(seen) - 1 for b in best), "the last iterate was not always the best"


def test_solve_stops_when_every_graph_has_settled(
    batch: GraphBatch, make_propagation: MakePropagation
) -> None:
    propagation = make_propagation(batch, "aggregator=avg", "inference=fixed_point")
    stats = solved(propagation, batch, steps=500, tolerance=1e-3).stats
    assert stats.converged == 1
    assert 1 < stats.steps < 500
    assert stats.violation <= 1e-3


def contraction(
    make_batch: MakeBatch, make_config: MakeConfig, make_learner: MakeLearner, *overrides: str
) -> tuple[Propagation, GraphBatch]:
    """f_a contracts by 0.95 per step along some directions."""
    batch = make_batch((20, 15), labels=3, arc_labels=0)
    config = make_config("aggregator=avg", "aggregator.hidden=[]", "state=[3]", *overrides)
    propagation = make_learner(config, train=batch).propagation
    (transition,) = propagation.network.transitions
    source, own = transition.state_weights()
    with torch.no_grad():
        source.copy_(0.95 * torch.linalg.qr(source).Q)
        own.zero_()
    return propagation, batch


def test_anderson_needs_fewer_steps_than_plain_iteration(
    make_batch: MakeBatch, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    steps = {}
    for rule in ("fixed_point", "anderson"):
        words = f"inference={rule}", "inference.damping=1.0"
        propagation, batch = contraction(make_batch, make_config, make_learner, *words)
        stats = solved(propagation, batch, steps=1000, tolerance=1e-6).stats
        assert stats.converged == 1
        steps[rule] = stats.steps
    assert steps["fixed_point"] > 60
    assert steps["anderson"] < 0.5 * steps["fixed_point"]


# Through few steps, a gradient has not come as far as the states have.
@pytest.mark.parametrize(("backward", "exactness"), [("unrolled", 1e-2), ("implicit", 1e-5)])
def test_anderson_serves_gnn_star_and_its_adjoint(
    backward: str,
    exactness: float,
    make_batch: MakeBatch,
    make_config: MakeConfig,
    make_learner: MakeLearner,
) -> None:
    """The same states and gradients as the plain iteration, from far fewer evaluations of f_a."""
    gradients, calls, found = {}, {}, {}
    for solver in ("damped", "anderson"):
        words = (
            "propagation=fixed_point",
            f"propagation.solver={solver}",
            f"propagation.backward={backward}",
            "propagation.max_iterations=1000",
            "propagation.tolerance=1e-10",
        )
        propagation, batch = contraction(make_batch, make_config, make_learner, *words)
        assert isinstance(propagation, FixedPoint)
        count: list[int] = []
        (transition,) = propagation.network.transitions
        transition.register_forward_hook(lambda *_, count=count: count.append(1))
        states, transits = propagation.propagate(batch)
        propagation.network.read(states, transits, batch).square().sum().backward()
        gradients[solver] = [p.grad for p in propagation.network.parameters()]
        calls[solver] = len(count)
        found[solver] = states[0].detach()
    assert calls["anderson"] < 0.5 * calls["damped"]
    for mine, theirs in zip(*gradients.values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=exactness, atol=1e-6)
    torch.testing.assert_close(*found.values(), rtol=0, atol=1e-7)


def test_anderson_survives_a_graph_that_is_already_at_rest(
    make_batch: MakeBatch, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    """A residual of exactly zero leaves nothing to mix by."""
    batch = make_batch((4, 4), labels=2, arc_labels=0)
    features = batch.features.clone()
    features[:4] = 0
    config = make_config("aggregator=avg", "aggregator.hidden=[]", "inference=anderson")
    propagation = make_learner(config, train=batch).propagation
    with torch.no_grad():
        (transition,) = propagation.network.transitions
        h_of(transition).first.bias.zero_()
    resting = batch.with_features(features)
    follower = Follower(*rule_for(propagation, resting))
    follower.follow(lambda x: propagation.transit(x, resting), steps=10)
    assert bool((follower.states[0][:4] == 0).all())
    assert bool(follower.states[0].isfinite().all())


def test_the_frozen_control_has_nothing_to_solve(
    batch: GraphBatch, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    config = make_config("propagation.states=frozen", "layers=2", "state=[3,2]")
    learner = make_learner(config, train=batch, test=batch.subset(torch.tensor([1, 0])))
    for epoch in range(1, 4):
        metrics = learner.train_epoch(epoch, batch)
        learner.follow("test")
    assert not any("violation" in name or "multiplier" in name for name in metrics)
    outcome, stats = learner.propagation.infer(batch, config.inference)
    assert stats is None
    assert outcome.residuals == learner.evaluate("test").outcome.residuals == []
    for found in (outcome, learner.evaluate("train").outcome, learner.evaluate("test").outcome):
        assert all(bool((x == 0).all()) for x in found.states)
