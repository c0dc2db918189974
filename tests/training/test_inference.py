"""The test phase: every graph finds its own states, whatever is evaluated beside it."""

from __future__ import annotations

import pytest
import torch

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import graph_violation, residuals
from lpgnn_cli.training.updates import (
    AndersonUpdates,
    FrozenUpdates,
    GradientUpdates,
    IterationUpdates,
    StateUpdates,
    inference_updates,
    solve,
)

RULES = {
    "lagrangian": (
        GradientUpdates,
        ["inference=lagrangian", "propagation.multiplier_start=5", "lr.state=0.05"],
    ),
    "lagrangian, mean": (
        GradientUpdates,
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
    "fixed_point": (IterationUpdates, ["inference=fixed_point"]),
    "anderson": (AndersonUpdates, ["inference=anderson"]),
    "one_shot": (IterationUpdates, ["inference=lagrangian", "propagation.updates=one_shot"]),
}


@pytest.fixture
def batch(make_batch) -> GraphBatch:
    """Graphs of other sizes and scales, so that they settle after different numbers of steps."""
    plain = make_batch((5, 9, 3, 7, 6), seed=1)
    scale = torch.tensor([1.0, 8.0, 0.1, 3.0, 0.5], dtype=torch.float64)[plain.graph_of_node]
    return plain.with_features(plain.features * scale[:, None])


@pytest.fixture
def make_updates(make_config, make_learner):
    def make(batch: GraphBatch, *overrides: str) -> StateUpdates:
        config = make_config("layers=2", "state=[3,2]", *overrides)
        network = make_learner(config, train=batch).network.eval()
        return inference_updates(network, batch, config)

    return make


def alike(updates: StateUpdates, batch: GraphBatch, make_config, overrides: list[str]):
    """The same rule with the same network on another batch."""
    config = make_config("layers=2", "state=[3,2]", *overrides)
    return inference_updates(updates.network, batch, config)


def scores_of(updates: StateUpdates) -> torch.Tensor:
    x = updates.variables.states
    with torch.no_grad():
        transits = updates.network.transit(x, updates.batch)
        return updates.network.read(x, transits, updates.batch)


@pytest.mark.parametrize("graphs", [[3], [4, 2], [4, 3, 2, 1, 0]], ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_a_prediction_depends_on_its_graph_alone(rule, graphs, batch, make_updates, make_config):
    kind, overrides = RULES[rule]
    overrides = ["aggregator=avg", *overrides]
    all_of_them = make_updates(batch, *overrides)
    assert type(all_of_them) is kind
    solve(all_of_them, steps=60, tolerance=0.02)
    chosen = torch.tensor(graphs)
    some = alike(all_of_them, batch.subset(chosen), make_config, overrides)
    solve(some, steps=60, tolerance=0.02)

    nodes = batch.nodes_of(chosen)
    for x, mine in zip(all_of_them.variables.states, some.variables.states, strict=True):
        torch.testing.assert_close(x[nodes], mine, rtol=0, atol=1e-6)
        assert float(mine.detach().abs().max()) > 0.01
    expected, found = scores_of(all_of_them)[chosen], scores_of(some)
    torch.testing.assert_close(expected, found, rtol=0, atol=1e-6)
    assert torch.equal(expected.argmax(1), found.argmax(1))


@pytest.mark.parametrize("rule", RULES)
def test_a_step_in_training_depends_on_its_graph_alone(rule, batch, make_updates, make_config):
    """Evaluation states that persist over the epochs move by the same rule."""
    _, overrides = RULES[rule]
    all_of_them = make_updates(batch, *overrides)
    chosen = torch.tensor([2, 0])
    some = alike(all_of_them, batch.subset(chosen), make_config, overrides)
    for _ in range(8):
        all_of_them.relax()
        some.relax()
    nodes = batch.nodes_of(chosen)
    for x, mine in zip(all_of_them.variables.states, some.variables.states, strict=True):
        torch.testing.assert_close(x[nodes], mine, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_theta_is_frozen_in_the_test_phase(rule, batch, make_updates):
    updates = make_updates(batch, *RULES[rule][1])
    before = {name: p.clone() for name, p in updates.network.named_parameters()}
    solve(updates, steps=5, tolerance=1e-9)
    for name, parameter in updates.network.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None


@pytest.mark.parametrize("rule", ["lagrangian", "fixed_point", "anderson"])
def test_solve_leaves_the_best_iterate_of_each_graph_and_says_how_it_went(
    rule, batch, make_updates
):
    """Steps so long that the violation goes up and down."""
    updates = make_updates(batch, *RULES[rule][1], "lr.state=0.4")
    tolerance, steps = 0.06, 25
    seen: list[list[torch.Tensor]] = []
    relax = updates.relax

    def watched() -> list[torch.Tensor]:
        seen.append([x.detach().clone() for x in updates.variables.states])
        return relax()

    updates.relax = watched
    stats = solve(updates, steps, tolerance)

    def violation(states: list[torch.Tensor]) -> torch.Tensor:
        with torch.no_grad():
            return graph_violation(residuals(states, updates.network.transit(states, batch)), batch)

    history = torch.stack([violation(states) for states in seen])
    best = []
    for graph in range(batch.num_graphs):
        below = (history[:, graph] < tolerance).nonzero().flatten()
        # Left alone once it has settled: later iterates may be better, but depend on the others.
        until = int(below[0]) + 1 if below.numel() else len(seen)
        best.append(int(history[:until, graph].argmin()))
        nodes = batch.nodes_of(torch.tensor([graph]))
        for layer, x in enumerate(updates.variables.states):
            assert torch.equal(x[nodes].detach(), seen[best[-1]][layer][nodes])
    reached = history[best, range(batch.num_graphs)]
    assert stats.violation == pytest.approx(float(reached.mean()), rel=1e-5)
    assert stats.converged == float((reached < tolerance).double().mean())
    assert stats.steps == len(seen)
    assert (stats.converged == 1) == (stats.steps < steps)
    if rule == "lagrangian":
        assert any(b < len(seen) - 1 for b in best), "the last iterate was not always the best"


def test_solve_stops_when_every_graph_has_settled(batch, make_updates):
    updates = make_updates(batch, "aggregator=avg", "inference=fixed_point")
    stats = solve(updates, steps=500, tolerance=1e-3)
    assert stats.converged == 1
    assert 1 < stats.steps < 500
    assert stats.violation < 1e-3


def test_anderson_needs_fewer_steps_than_plain_iteration(make_batch, make_config, make_learner):
    """A contraction by 0.95 a step along some directions."""
    batch = make_batch((20, 15), labels=3, arc_labels=0)
    steps = {}
    for rule in ("fixed_point", "anderson"):
        config = make_config(
            "aggregator=avg",
            "aggregator.hidden=[]",
            "state=[3]",
            f"inference={rule}",
            "inference.damping=1.0",
        )
        network = make_learner(config, train=batch).network
        source, own = network.transitions[0].state_weights()
        with torch.no_grad():
            source.copy_(0.95 * torch.linalg.qr(source).Q)
            own.zero_()
        updates = inference_updates(network, batch, config)
        stats = solve(updates, steps=1000, tolerance=1e-6)
        assert stats.converged == 1
        steps[rule] = stats.steps
    assert steps["fixed_point"] > 60
    assert steps["anderson"] < 0.5 * steps["fixed_point"]


def test_anderson_survives_a_graph_that_is_already_at_rest(make_batch, make_config, make_learner):
    """A residual of exactly zero leaves nothing to mix by."""
    batch = make_batch((4, 4), labels=2, arc_labels=0)
    features = batch.features.clone()
    features[:4] = 0
    config = make_config("aggregator=avg", "aggregator.hidden=[]", "inference=anderson")
    network = make_learner(config, train=batch).network
    with torch.no_grad():
        network.transitions[0].h.first.bias.zero_()
    updates = inference_updates(network, batch.with_features(features), config)
    for _ in range(10):
        updates.relax()
    assert bool((updates.variables.states[0][:4] == 0).all())
    assert bool(updates.variables.states[0].isfinite().all())


def test_the_frozen_control_has_nothing_to_solve(batch, make_config, make_learner):
    config = make_config("propagation.states=frozen", "layers=2", "state=[3,2]")
    learner = make_learner(config, train=batch, test=batch.subset(torch.tensor([1, 0])))
    updates = inference_updates(learner.network, batch, config)
    assert isinstance(updates, FrozenUpdates)
    stats = solve(updates, steps=10, tolerance=1e-3)
    assert (stats.steps, stats.violation, stats.converged) == (0, 0.0, 1.0)
    for epoch in range(1, 4):
        figures = learner.train_epoch(epoch, batch)
        learner.follow("test")
    assert not any("violation" in name or "multiplier" in name for name in figures)
    assert learner.evaluate("test").residuals == []
    for name in ("train", "test"):
        assert all(bool((x == 0).all()) for x in learner.states_of(name))
