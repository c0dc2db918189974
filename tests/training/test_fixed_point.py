"""GNN*: where the iteration ends, and what its two backward passes say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from lpgnn_cli.config.model import FixedPointConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.propagation.fixed_point import FixedPoint
from lpgnn_cli.propagation.solvers import graph_violation, residuals

from ..conftest import present
from .conftest import MakeBatch, MakeConfig, MakeLearner, h_of

MakeStar = Callable[..., tuple[FixedPoint, FixedPointConfig]]


@pytest.fixture
def make_star(make_config: MakeConfig, make_learner: MakeLearner) -> MakeStar:
    def make(batch: GraphBatch, *overrides: str) -> tuple[FixedPoint, FixedPointConfig]:
        config = make_config("propagation=fixed_point", "aggregator=avg", "state=[3]", *overrides)
        star = make_learner(config, train=batch).propagation
        assert isinstance(star, FixedPoint)
        return star, star.settings

    return make


def propagate(
    star: FixedPoint, batch: GraphBatch, settings: FixedPointConfig
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    star.settings = settings
    return star.propagate(batch)


@pytest.mark.parametrize("source", ["transition", "state"])
@pytest.mark.parametrize("layers", [1, 2])
def test_unrolled_and_implicit_gradients_agree(
    layers: int, source: str, make_batch: MakeBatch, make_star: MakeStar
) -> None:
    batch = make_batch()
    star, settings = make_star(batch, f"layers={layers}", "readout.layers=all")
    network = star.network
    network.readout.config.source = source
    gradients = {}
    for backward in ("unrolled", "implicit"):
        exact = replace(settings, max_iterations=500, tolerance=1e-14, backward=backward)
        network.zero_grad()
        states, transits = propagate(star, batch, exact)
        violation = torch.cat([r.flatten() for r in residuals(states, transits)])
        assert float(violation.detach().abs().max()) < 1e-12
        loss = network.read(states, transits, batch).square().sum()
        loss.backward()
        gradients[backward] = {name: p.grad for name, p in network.named_parameters()}
    for name, unrolled in gradients["unrolled"].items():
        assert unrolled is not None
        assert float(unrolled.abs().max()) > 0, name
        torch.testing.assert_close(gradients["implicit"][name], unrolled, rtol=1e-8, atol=1e-10)


def test_implicit_gradients_are_not_those_of_one_step(
    make_batch: MakeBatch, make_star: MakeStar
) -> None:
    """So that the agreement above is not one of two that both leave the Jacobian out."""
    batch = make_batch()
    star, settings = make_star(batch)
    network = star.network
    of_weight = []
    for iterations in (500, 1):
        exact = replace(settings, max_iterations=500, tolerance=1e-14, backward="unrolled")
        states, transits = propagate(star, batch, exact)
        if iterations == 1:
            transits = star.transit([s.detach() for s in states], batch)
        network.zero_grad()
        network.read(states, transits, batch).square().sum().backward()
        (transition,) = network.transitions
        of_weight.append(present(h_of(transition).first.weight.grad).clone())
    assert float((of_weight[0] - of_weight[1]).abs().max()) > 1e-3


def test_the_iteration_ends_within_tolerance_or_at_the_cap(
    make_batch: MakeBatch, make_star: MakeStar
) -> None:
    batch = make_batch()
    star, settings = make_star(batch)
    network = star.network
    (transition,) = network.transitions
    calls: list[int] = []
    transition.register_forward_hook(lambda *_: calls.append(1))

    states, transits = propagate(star, batch, replace(settings, max_iterations=200))
    violation = graph_violation(residuals(states, transits), batch).detach()
    assert float(violation.max()) <= settings.tolerance
    assert len(calls) < 100

    calls.clear()
    capped = replace(settings, max_iterations=3, tolerance=1e-14)
    states, _ = propagate(star, batch, capped)
    assert len(calls) == 3 + 1, "three steps, and f_a where they end"
    by_hand = network.zero_states(batch)[0]
    for _ in range(3):
        by_hand = transition(by_hand, batch.features, batch)
    torch.testing.assert_close(states[0], by_hand)


def test_a_graph_rests_whatever_others_do(make_batch: MakeBatch, make_star: MakeStar) -> None:
    """Slow and fast graphs side by side: each ends where it would end alone."""
    batch = make_batch((3, 9, 5, 8), seed=4)
    # Features of very different sizes take very different numbers of steps.
    scale = torch.tensor([1e-3, 30.0, 1e-1, 3.0], dtype=torch.float64)[batch.graph_of_node]
    batch = batch.with_features(batch.features * scale[:, None])
    star, settings = make_star(batch, "aggregator.hidden=[]")
    network = star.network
    loose = replace(settings, tolerance=1e-2, max_iterations=200)
    together, _ = propagate(star, batch, loose)
    lengths = set()
    for graph in range(batch.num_graphs):
        nodes = batch.nodes_of(torch.tensor([graph]))
        alone = batch.subset(torch.tensor([graph]))
        calls: list[int] = []
        (transition,) = network.transitions
        hook = transition.register_forward_hook(lambda *_, c=calls: c.append(1))
        states, _ = propagate(star, alone, loose)
        hook.remove()
        lengths.add(len(calls))
        torch.testing.assert_close(together[0][nodes], states[0], rtol=0, atol=1e-12)
    assert len(lengths) > 1, "the graphs converge at different speeds"


def test_damping_takes_part_of_a_step(make_batch: MakeBatch, make_star: MakeStar) -> None:
    """f_a(x) = -1.2 x + 1 repels the plain iteration; half steps find its fixed point 1 / 2.2."""
    batch = make_batch(labels=0, arc_labels=0)
    star, settings = make_star(batch, "aggregator=none", "aggregator.hidden=[]", "state=[1]")
    network = star.network
    (transition,) = network.transitions
    linear = h_of(transition).first
    with torch.no_grad():
        linear.weight.fill_(-1.2)
        linear.bias.fill_(1.0)
    once = replace(settings, max_iterations=1, damping=0.25)
    states, _ = propagate(star, batch, once)
    torch.testing.assert_close(states[0], torch.full_like(states[0], 0.25))
    many = replace(settings, max_iterations=100, tolerance=1e-10)
    states, _ = propagate(star, batch, replace(many, damping=0.5))
    torch.testing.assert_close(states[0], torch.full_like(states[0], 1 / 2.2), rtol=0, atol=1e-9)
    states, _ = propagate(star, batch, replace(many, damping=1.0))
    assert float(states[0].detach().abs().max()) > 1e3
