"""A gain that is bounded by construction, and multipliers that carry the adjoint under it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lpgnn_cli.config.compose import compose
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.propagation import Propagation, build_propagation
from lpgnn_cli.propagation.gain import Gain
from lpgnn_cli.propagation.lagrangian import Lagrangian

from .conftest import MakeBatch, MakeConfig, MakeLearner

BOUNDED = ("sum", "avg", "gin", "gcn", "sage", "selection", "median", "none", "diffusion")


def random_graphs(seed: int, *, directed: bool) -> GraphBatch:
    """Three graphs with hubs, leaves and isolated nodes, in double precision."""
    generator = torch.Generator().manual_seed(seed)
    source, target, ptr = [], [], [0]
    for size in (3, 8, 14):
        density = float(torch.rand((), generator=generator))
        chosen = torch.rand(size, size, generator=generator) < density
        chosen[0] = True  # a hub
        chosen.fill_diagonal_(False)
        chosen[-1], chosen[:, -1] = False, False  # an isolated node
        if not directed:
            chosen = chosen | chosen.T
        u, v = chosen.nonzero(as_tuple=True)
        source.append(u + ptr[-1])
        target.append(v + ptr[-1])
        ptr.append(ptr[-1] + size)
    return GraphBatch.from_arcs(
        features=torch.randn(ptr[-1], 3, generator=generator, dtype=torch.float64),
        source=torch.cat(source),
        target=torch.cat(target),
        graph_ptr=torch.tensor(ptr),
        targets=torch.arange(ptr[-1]) % 2,
        target_level="node",
        num_classes=2,
    )


def stretched(propagation: Propagation, factor: float) -> None:
    """Weights as a long and wild training might leave them, then projected."""
    with torch.no_grad():
        for parameter in propagation.network.transitions.parameters():
            parameter.add_(factor * torch.randn_like(parameter))
    assert propagation.bound is not None
    propagation.bound.project()


@pytest.mark.parametrize("aggregator", BOUNDED)
@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=3, deadline=None)
@given(
    seed=st.integers(0, 1000),
    factor=st.sampled_from([0.0, 0.3, 3.0]),
    layers=st.sampled_from([1, 3]),
)
def test_the_measured_gain_is_within_the_bound(
    aggregator: str, directed: bool, seed: int, factor: float, layers: int
) -> None:
    own = [f"aggregator={aggregator}", f"layers={layers}"]
    bound = ["propagation.gain=0.95", "propagation.hand_up=transition"]
    config = compose("train", ["dataset=karate", "recipe=none", *own, *bound])
    batch = random_graphs(seed, directed=directed)
    torch.manual_seed(seed)
    propagation = build_propagation(
        config, DataShape.of(batch), {"train": batch}, like=batch.features
    )
    assert propagation.path_free
    stretched(propagation, factor)
    for x in (
        propagation.network.zero_states(batch),
        [torch.randn_like(x) for x in propagation.network.zero_states(batch)],
    ):
        gain = Gain.estimate(lambda s: propagation.transit(s, batch), x, batch, iterations=60)
        assert float(gain.max()) <= 0.95 + 1e-6


def test_layers_attract_where_each_of_them_does() -> None:
    """What a layer hands up stretches differences on the way, and not in the end."""
    words = ["dataset=karate", "recipe=none", "layers=2", "state=[1]", "aggregator=diffusion"]
    config = compose("train", [*words, "propagation.gain=0.5", "propagation.hand_up=transition"])
    batch = random_graphs(0, directed=False)
    torch.manual_seed(0)
    propagation = build_propagation(
        config, DataShape.of(batch), {"train": batch}, like=batch.features
    )
    stretched(propagation, 3.0)
    outcome, stats = propagation.infer(batch, config.inference)
    assert stats is not None
    assert stats.converged == 1
    x = [state.requires_grad_() for state in outcome.states]

    def flat(*states: torch.Tensor) -> torch.Tensor:
        return torch.cat(propagation.transit(states, batch)).flatten()

    jacobian = torch.cat(torch.autograd.functional.jacobian(flat, tuple(x)), dim=1).flatten(1)
    jacobian = jacobian.reshape(2 * batch.num_nodes, 2 * batch.num_nodes)
    assert float(torch.linalg.matrix_norm(jacobian, 2)) > 1
    radius = float(torch.linalg.eigvals(jacobian).abs().max())
    assert float(propagation.gain(outcome, batch).max()) == pytest.approx(radius, rel=1e-3)
    assert radius <= 0.5 + 1e-6


def test_what_cannot_be_proved_is_said_not_to_be(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    for words in (["aggregator=gat"], ["aggregator.norm=batch"], []):
        bound = [] if not words else ["propagation.gain=0.9"]
        learner = make_learner(make_config(*words, *bound), train=make_batch())
        assert not learner.propagation.path_free


@pytest.mark.parametrize("aggregator", BOUNDED)
def test_states_travel_far_at_the_start(aggregator: str) -> None:
    """Without a label in sight, what one end of a path knows arrives at the other."""
    if aggregator in ("none", "median"):
        pytest.skip("it sees no neighbours, or not those that differ from most")
    size = 12
    u = torch.arange(size - 1)
    batch = GraphBatch.from_arcs(
        features=torch.eye(size, 1, dtype=torch.float64),
        source=torch.cat([u, u + 1]),
        target=torch.cat([u + 1, u]),
        graph_ptr=torch.tensor([0, size]),
        targets=torch.zeros(size, dtype=torch.int64),
        target_level="node",
        num_classes=2,
    )
    words = ["dataset=karate", "recipe=none", f"aggregator={aggregator}", "propagation.gain=0.95"]
    # Weights that it learns start anywhere: those for long distances are the identity.
    words += ["aggregator.mixing=identity"] if aggregator == "diffusion" else []
    config = compose("train", words)
    torch.manual_seed(0)
    propagation = build_propagation(
        config, DataShape.of(batch), {"train": batch}, like=batch.features
    )
    at = [x.requires_grad_() for x in propagation.network.zero_states(batch)]
    x = at
    for _ in range(size - 1):
        x = propagation.transit(x, batch)
    (pulled,) = torch.autograd.grad(x[0][-1].sum(), at)
    # Weights as torch draws them, shrunk to the same bound, leave less than 1e-10. The taps of
    # `selection` share the bound, and `gin` counts the node itself among its neighbours.
    assert float(pulled[0].norm()) > (1e-8 if aggregator in ("selection", "gin") else 1e-5)


def bounded_diffusion() -> tuple[Propagation, GraphBatch]:
    """A diffusion with a bound on its gain, and the graphs that it is for."""
    config = compose(
        "train",
        ["dataset=karate", "recipe=none", "aggregator=diffusion", "propagation.gain=0.95"],
    )
    batch = random_graphs(0, directed=False)
    propagation = build_propagation(
        config, DataShape.of(batch), {"train": batch}, like=batch.features
    )
    return propagation, batch


def test_a_diffusion_that_nobody_differentiates_keeps_up_with_its_weights() -> None:
    """What their bound makes of them is kept as long as they are the same."""
    propagation, batch = bounded_diffusion()
    x = [torch.randn_like(x) for x in propagation.network.zero_states(batch)]
    for stretch in (1.0, 1.0, 3.0, torch.nan):
        stretched(propagation, stretch)
        (expected,) = propagation.transit(x, batch)
        with torch.no_grad():
            for _ in range(2):
                (found,) = propagation.transit(x, batch)
                torch.testing.assert_close(found, expected.detach(), equal_nan=True)
                assert not found.requires_grad


def test_at_the_bound_no_gradient_of_diffusion_asks_for_larger_weights() -> None:
    """Growth would be cut away, and all other weights with it."""
    propagation, batch = bounded_diffusion()
    stretched(propagation, 1.0)
    (transition,) = propagation.network.transitions
    weights = transition.state_weights()
    before = [weight.detach().clone() for weight in weights]
    x = [torch.randn_like(x) for x in propagation.network.zero_states(batch)]
    (transit,) = propagation.transit(x, batch)
    gradients = torch.autograd.grad(transit.square().sum(), weights)
    outward = sum(float((w * g).sum()) for w, g in zip(before, gradients, strict=True))
    sizes = [float(w.norm() * g.norm()) for w, g in zip(before, gradients, strict=True)]
    assert min(sizes) > 0
    assert abs(outward) < 1e-9 * sum(sizes)
    assert propagation.bound is not None
    propagation.bound.project()
    assert all(torch.equal(a, b) for a, b in zip(before, weights, strict=True))


def exact_gradient(propagation: Propagation, part: Part) -> torch.Tensor:
    """Of theta, by differentiation through a long iteration to the fixed point."""
    x = propagation.network.zero_states(part.batch)
    for _ in range(100):
        x = propagation.transit(x, part.batch)
    scores = propagation.network.read(x, propagation.transit(x, part.batch), part.batch)
    loss = supervised_loss(part, scores, "sum")
    gradients = torch.autograd.grad(
        loss, list(propagation.network.parameters()), allow_unused=True, materialize_grads=True
    )
    return torch.cat([g.flatten() for g in gradients])


RULES = {
    "one_shot": ["propagation.updates=one_shot"],
    "one_shot, two layers": ["propagation.updates=one_shot", "layers=2", "state=[4]"],
    "one_shot, direction": ["propagation.updates=one_shot", "readout.norm=unit"],
    "gradient": [
        "propagation.updates=gradient",
        "propagation.state_step=preconditioned",
        "propagation.multiplier_start=1e4",
        "lr.state=0.5",
    ],
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("level", ["graph", "node"])
def test_at_rest_theta_gets_the_gradient_through_the_fixed_point(
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
    rule: str,
    level: str,
) -> None:
    config = make_config(
        "optim=sgd",
        "lr.theta=1e-30",
        "lr.multiplier=1e-30",
        "state=[4]",
        "precision=float64",
        "propagation.gain=0.5",
        *RULES[rule],
    )
    learner = make_learner(config, train=make_batch((7, 6), level=level))
    propagation, part = learner.propagation, learner.parts["train"]
    assert isinstance(propagation, Lagrangian)
    for epoch in range(1, 250):
        learner.train_epoch(epoch)
    parameters = list(propagation.network.parameters())
    mine = torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
    )
    theirs = exact_gradient(propagation, part)
    assert torch.cosine_similarity(mine, theirs, dim=0) > 0.999
    assert float(mine.norm()) == pytest.approx(float(theirs.norm()), rel=0.01)


def test_without_adjoint_theta_gets_the_gradient_of_one_step(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    words = ["optim=sgd", "lr.theta=1e-30", "state=[4]", "propagation.gain=0.9"]
    rule = ["propagation.updates=one_shot", "propagation.adjoint=false"]
    learner = make_learner(make_config(*words, *rule), train=make_batch((7, 6)))
    for epoch in range(1, 100):
        learner.train_epoch(epoch)
    propagation, part = learner.propagation, learner.parts["train"]
    assert isinstance(propagation, Lagrangian)
    assert all(not m.any() for m in propagation.variables.multipliers.values)
    x = [state.detach() for state in propagation.variables.states.values]
    scores = propagation.network.read(x, propagation.transit(x, part.batch), part.batch)
    loss = supervised_loss(part, scores, "sum")
    weight = next(propagation.network.parameters())
    (wanted,) = torch.autograd.grad(loss, [weight])
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad, wanted)


def test_the_spectral_norm_is_bounded_from_above_and_tightly() -> None:
    for directed in (False, True):
        batch = random_graphs(3, directed=directed)
        for graph, bound in enumerate(batch.spectral_norm.tolist()):
            nodes = batch.nodes_of(torch.tensor([graph]))
            one = batch.subset(torch.tensor([graph]))
            dense = torch.zeros(len(nodes), len(nodes), dtype=torch.float64)
            dense[one.arcs.target, one.arcs.source] = 1.0
            exact = float(torch.linalg.matrix_norm(dense, ord=2))
            assert exact - 1e-9 <= bound <= 1.01 * exact
            assert float(one.spectral_norm) == pytest.approx(bound)


@pytest.mark.parametrize("directed", [False, True])
def test_without_its_training_graphs_f_a_is_the_same_function(directed: bool) -> None:
    """The bound that stands inside f_a goes by the kind of graphs that it was made for."""
    config = compose(
        "train",
        ["dataset=karate", "recipe=none", "aggregator=diffusion", "propagation.gain=0.95"],
    )
    batch = random_graphs(0, directed=directed)
    shape = DataShape.of(batch)
    trained = build_propagation(config, shape, {"train": batch}, like=batch.features)
    stretched(trained, 1.0)
    loaded = build_propagation(config, shape, {}, like=batch.features)
    loaded.network.load_state_dict(trained.network.state_dict())
    x = [torch.randn_like(x) for x in trained.network.zero_states(batch)]
    (here,), (there,) = trained.transit(x, batch), loaded.transit(x, batch)
    assert torch.equal(here, there)
