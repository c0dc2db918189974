"""Every network of the comparison on MUTAG, and what the settings of a propagation do."""

from __future__ import annotations

import math

import pytest
import torch

from lpgnn_cli.config.model import ContractiveConfig
from lpgnn_cli.propagation.fixed_point import FixedPoint
from lpgnn_cli.propagation.gain import Gain
from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.propagation.layers import Layers
from lpgnn_cli.propagation.solvers import residuals
from lpgnn_cli.runfolder import FINISHED, RunFolder
from lpgnn_cli.training.experiment import make_folds
from lpgnn_cli.training.fit import UnitFit

from ..conftest import present
from .conftest import MakeBatch, MakeConfig, MakeLearner, MakeTasks, h_of

NETWORKS = {
    "LP-GNN": ("lagrangian", "sum"),
    "LP-GIN": ("lagrangian", "gin"),
    "LP-GCN": ("lagrangian", "gcn"),
    "LP-SAGE": ("lagrangian", "sage"),
    "LP-GAT": ("lagrangian", "gat"),
    "LP-selection": ("lagrangian", "selection"),
    "LP-median": ("lagrangian", "median"),
    "GNN*": ("fixed_point", "avg"),
    "GIN": ("layers", "gin"),
    "GCN": ("layers", "gcn"),
    "SAGE": ("layers", "sage"),
    "GAT": ("layers", "gat"),
    "MLP": ("layers", "none"),
}

ALL = {f"{part}/{name}" for part in ("train", "test") for name in ("accuracy", "loss")}
ALL |= {"train/lagrangian", "train/transitions_per_epoch", "train/transitions_backward"}
VIOLATIONS = {
    f"{part}/{name}"
    for part in ("train", "test")
    for name in ("violation_mean", "violation_max", "layer0/violation_mean")
}
MULTIPLIERS = {"train/multiplier_norm", "train/layer0/multiplier_norm"}
COLUMNS = {
    "lagrangian": ALL | VIOLATIONS | MULTIPLIERS,
    "fixed_point": ALL | VIOLATIONS,
    "layers": ALL,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_trains_by_changing_propagation_and_aggregator_alone(
    name: str, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    propagation, aggregator = NETWORKS[name]
    words = f"propagation={propagation}", f"aggregator={aggregator}"
    config = make_config(*words, "epochs=3", "inference.steps=5", recipe=True)
    task = make_tasks(config)[0]
    fit = UnitFit(task)
    before = {n: p.detach().clone() for n, p in fit.propagation.network.named_parameters()}
    result = fit.fit(lambda *_: None, lambda: False)
    assert (result.state, result.epochs) == (FINISHED, 3), result.reason
    rows = RunFolder(task.run).read_metrics(task.unit.name)
    for row in rows:
        assert row.keys() - {"epoch", "time"} == COLUMNS[propagation]
        assert all(math.isfinite(value) for value in row.values())
    if getattr(config.propagation, "warmup", 0) < 3:
        moved = [n for n, p in fit.propagation.network.named_parameters() if not p.equal(before[n])]
        assert any(n.startswith("transitions.0") for n in moved)
        assert any(n.startswith("readout") for n in moved)


@pytest.mark.parametrize("propagation", ["lagrangian", "fixed_point", "layers"])
def test_layers_have_their_own_sizes_states_and_figures(
    propagation: str, make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    batch = make_batch()
    words = f"propagation={propagation}", "layers=3", "state=[5,4,2]", "readout.layers=all"
    learner = make_learner(make_config(*words), train=batch, test=batch.subset(torch.tensor([1])))
    figures = learner.train_epoch(1, batch)
    per_layer = {name for name in figures if "/layer" in name}
    assert learner.network.readout.mlp.first.in_features == 11
    if propagation == "lagrangian":
        variables = learner.variables
        assert [x.shape[1] for x in variables.states.values] == [5, 4, 2]
        assert [m.shape[1] for m in variables.multipliers.values] == [1, 1, 1]
        norms = [float(figures[f"train/layer{k}/multiplier_norm"]) for k in range(3)]
        total = float(figures["train/multiplier_norm"])
        assert total == pytest.approx(math.sqrt(sum(n * n for n in norms)))
    expected = 0 if propagation == "layers" else 3
    assert sum("violation_mean" in name for name in per_layer) == expected


def test_what_a_layer_hands_up(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """Its state, as in the paper: or else its transition, which then feels the layer above."""
    batch = make_batch()
    words = "layers=2", "state=[3,4]", "propagation.multiplier_start=1"
    torch.manual_seed(1)
    x = [torch.randn(batch.num_nodes, size, dtype=torch.float64) for size in (3, 4)]
    found = {}
    for hand_up in ("state", "transition"):
        learner = make_learner(make_config(*words, f"propagation.hand_up={hand_up}"), train=batch)
        first, second = learner.network.transitions
        lower, upper = learner.propagation.transit(x, batch)
        label = x[0] if hand_up == "state" else first(x[0], batch.features, batch)
        torch.testing.assert_close(lower, first(x[0], batch.features, batch))
        torch.testing.assert_close(upper, second(x[1], label, batch))
        upper.sum().backward()
        found[hand_up] = h_of(first).first.weight.grad
    assert found["state"] is None
    assert float(present(found["transition"]).abs().max()) > 0


@pytest.mark.parametrize("propagation", ["lagrangian", "fixed_point", "layers"])
def test_normalised_labels_between_layers(
    propagation: str, make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """What is handed up has mean 0 and variance 1 over the nodes; the features stay as they are."""
    words = f"propagation={propagation}", "propagation.norm=batch", "layers=2", "state=[3]"
    batch = make_batch()
    learner = make_learner(make_config(*words), train=batch)
    labels = []
    for transition in learner.network.transitions:
        transition.register_forward_hook(lambda _, given, __: labels.append(given[1]))
    before = [p.detach().clone() for p in learner.network.norms.parameters()]
    for epoch in (1, 2):  # at the first, the states of lagrangian are still zero
        labels.clear()
        learner.train_epoch(epoch, batch)
    assert labels[0] is batch.features
    upper = labels[-1].detach()
    torch.testing.assert_close(upper.mean(dim=0), torch.zeros(3).double(), atol=0.2, rtol=0)
    torch.testing.assert_close(upper.var(dim=0), torch.ones(3).double(), atol=0.2, rtol=0)
    moved = zip(before, learner.network.norms.parameters(), strict=True)
    assert all(not torch.equal(old, new) for old, new in moved)


def test_the_readout_reads_what_it_is_told(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    batch = make_batch()
    states = [torch.full((batch.num_nodes, 3), 1.0 + k, dtype=torch.float64) for k in range(2)]
    transits = [torch.full_like(s, 10.0 + k) for k, s in enumerate(states)]
    sizes = batch.graph_ptr.diff().double()
    cases = [
        ("source=transition", "last", "sum", 1.0, [11.0]),
        ("source=state", "last", "sum", 0.5, [2.0]),
        ("source=transition", "all", "sum", 1.0, [10.0, 11.0]),
        ("source=state", "all", "mean", 1.0, [1.0, 2.0]),
    ]
    for source, layers, pool, scale, values in cases:
        config = make_config("layers=2", "state=[3]", "readout=linear", f"readout.{source}")
        config.readout.layers, config.readout.pool, config.readout.scale = layers, pool, scale
        network = make_learner(config, train=batch).network
        read = torch.tensor([v for v in values for _ in range(3)], dtype=torch.float64) * scale
        rows = sizes[:, None] * read if pool == "sum" else read.expand(len(sizes), -1)
        expected = network.readout.mlp(rows)
        torch.testing.assert_close(network.read(states, transits, batch), expected)


def test_warm_up_moves_the_states_alone(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    for updates in ("gradient", "one_shot"):
        words = "propagation.warmup=3", "propagation.multiplier_start=2"
        config = make_config(*words, f"propagation.updates={updates}")
        batch = make_batch()
        learner = make_learner(config, train=batch)
        theta = {n: p.detach().clone() for n, p in learner.network.named_parameters()}
        variables = learner.variables
        multipliers = variables.multipliers.values[0].detach().clone()
        for epoch in (1, 2, 3):
            before = variables.states.values[0].detach().clone()
            learner.train_epoch(epoch, batch)
            assert not torch.equal(variables.states.values[0], before)
        assert all(torch.equal(p, theta[n]) for n, p in learner.network.named_parameters())
        assert torch.equal(variables.multipliers.values[0], multipliers)
        learner.train_epoch(4, batch)
        assert not any(torch.equal(p, theta[n]) for n, p in learner.network.named_parameters())
        assert not torch.equal(variables.multipliers.values[0], multipliers)


@pytest.mark.parametrize("source", ["transition", "state"])
def test_unsupervised_states_feel_the_constraints_alone(
    source: str, make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    batch = make_batch()
    words = ("layers=2", "state=[3]", "propagation.multiplier_start=1", f"readout.source={source}")
    gradients = {}
    for supervised in ("true", "false"):
        config = make_config(*words, f"propagation.supervise_states={supervised}")
        learner = make_learner(config, train=batch)
        x = learner.variables.states.values
        torch.manual_seed(2)
        with torch.no_grad():
            for state in x:
                state.normal_()
        r = residuals(x, learner.propagation.transit(x, batch))
        alone = torch.autograd.grad(torch.stack([d.square().sum() for d in r]).sum(), x)
        learner.train_epoch(1, batch)
        same = [
            torch.allclose(present(s.grad), g, rtol=1e-9) for s, g in zip(x, alone, strict=True)
        ]
        assert same[-1] == (supervised == "false")
        assert all(same) == (supervised == "false")
        gradients[supervised] = [present(p.grad).clone() for p in learner.network.parameters()]
    # Theta learns from the loss all the same.
    for mine, theirs in zip(*gradients.values(), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("updates", ["gradient", "one_shot"])
def test_test_graphs_have_no_part_in_the_weights(
    updates: str, make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """Other test features, other test states: and the same weights to the last bit."""
    train, weights, states = make_batch(), [], []
    for seed in (5, 6):
        config = make_config(f"propagation.updates={updates}", "aggregator.dropout=0.2")
        test = make_batch(seed=seed)
        learner = make_learner(config, train=train, test=test)
        for epoch in range(1, 6):
            learner.train_epoch(epoch, train)
            learner.follow("test")
            learner.evaluate("test").metrics("test")
        weights.append(torch.cat([p.detach().flatten() for p in learner.network.parameters()]))
        states.append(learner.lagrangian.states_of("test")[0].detach())
    assert torch.equal(*weights)
    assert not torch.equal(*states)
    assert all(bool((x != 0).any()) for x in states), "the states of test nodes do follow"


def test_unsupervised_nodes_of_a_graph_enter_by_their_constraints(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    """Transductive: other targets of nodes that are only scored change nothing in training."""
    config = make_config("dataset=karate", "protocol.supervised_per_class=2", "epochs=4")
    (task,) = make_tasks(config)
    learners = []
    for shift in (0, 1):
        fit = UnitFit(task)
        batch = fit.parts["test"].batch
        batch.targets[task.split.test] = (batch.targets[task.split.test] + shift) % 4
        for epoch in range(1, 5):
            fit.propagation.train_step(epoch, fit.parts["train"])
        assert isinstance(fit.propagation, Lagrangian)
        learners.append(fit.propagation)
        assert not fit.propagation.followers, "one graph has its states once"
    mine, theirs = (list(learner.network.parameters()) for learner in learners)
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert bool((learners[0].states_of("test")[0][task.split.test] != 0).any())


@pytest.mark.parametrize("aggregator", ["sum", "gcn", "diffusion"])
@pytest.mark.parametrize("propagation", ["lagrangian", "fixed_point"])
def test_the_bound_on_the_gain_holds_through_training_and_leaves_the_rest_alone(
    propagation: str,
    aggregator: str,
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
) -> None:
    batch = make_batch()
    words = f"propagation={propagation}", f"aggregator={aggregator}", "lr.theta=0.5"
    learner = make_learner(make_config(*words, "propagation.gain=0.3"), train=batch)
    (transition,) = learner.network.transitions
    others = [p.detach().clone() for p in learner.network.readout.parameters()]
    allowed = []
    for epoch in range(1, 5):
        learner.train_epoch(epoch, batch)
        allowed.append(present(transition.state_gain()))
        assert allowed[-1] <= 0.3 * (1 + 1e-9)
    assert max(allowed) > 0.29, "rescaled, not zeroed"
    pairs = zip(others, learner.network.readout.parameters(), strict=True)
    assert not any(torch.equal(old, new) for old, new in pairs)


def test_the_bound_leaves_diverged_weights_to_the_watch_on_the_lagrangian(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    batch = make_batch()
    learner = make_learner(make_config("propagation.gain=0.9"), train=batch)
    with torch.no_grad():
        (transition,) = learner.network.transitions
        h_of(transition).first.weight.fill_(math.inf)
    assert not math.isfinite(float(learner.train_epoch(1, batch)["train/lagrangian"]))


def test_the_gain_penalty_lowers_the_gain(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    batch, gains = make_batch((6, 7)), {}
    for gain in ("null", "0.3"):
        config = make_config(
            f"propagation.gain={gain}",
            "propagation.gain_held_by=penalty",
            "propagation.gain_penalty=10",
            "state=[4]",
        )
        learner = make_learner(config, train=batch)
        for epoch in range(1, 101):
            learner.train_epoch(epoch, batch)
        torch.manual_seed(0)
        outcome = learner.evaluate("train").outcome
        gains[gain] = float(learner.propagation.gain(outcome, batch).mean())
    assert gains["null"] > 0.7
    assert gains["0.3"] < 0.4


@pytest.mark.parametrize("rule", ["gradient", "one_shot", "fixed_point"])
def test_theta_feels_the_gain_penalty(
    rule: str, make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """What the penalty adds to the gradient of theta, against its finite difference."""
    batch, gradients = make_batch((6, 7)), {}
    propagation = "fixed_point" if rule == "fixed_point" else "lagrangian"
    held = "propagation.gain_held_by=penalty"
    updates = ["propagation.updates=one_shot"] if rule == "one_shot" else []
    config = make_config(f"propagation={propagation}", held, "state=[4]", *updates)
    assert isinstance(config.propagation, ContractiveConfig)
    config.propagation.gain = 0.1
    for strength in (0.0, 10.0):
        config.propagation.gain_penalty = strength
        learner = make_learner(config, train=batch)
        learner.propagation.step_theta = lambda: None
        bound = present(learner.propagation.bound)
        probes = [p.clone() for p in present(bound.gain).probes]
        if rule == "fixed_point":
            assert isinstance(learner.propagation, FixedPoint)
            states = [x.detach().clone() for x in learner.propagation.propagate(batch)[0]]
        else:
            torch.manual_seed(4)
            with torch.no_grad():
                learner.variables.states.values[0].normal_()
            states = [x.detach().clone() for x in learner.lagrangian.states_of("train")]
        learner.train_epoch(1, batch)
        gradients[strength] = [present(p.grad).clone() for p in learner.network.parameters()]

    torch.manual_seed(5)
    parameters = list(learner.network.parameters())
    direction = [torch.randn_like(p) for p in parameters]

    def penalty(step: float) -> float:
        bound.load_state_dict({"probes": probes})
        with torch.no_grad():
            for parameter, along in zip(parameters, direction, strict=True):
                parameter.add_(step * along)
        at = [x.requires_grad_() for x in states]
        transits = learner.propagation.transit(at, batch)
        value = float(learner.propagation.penalty(at, transits, batch, None).detach())
        with torch.no_grad():
            for parameter, along in zip(parameters, direction, strict=True):
                parameter.sub_(step * along)
        return value

    slope = (penalty(1e-5) - penalty(-1e-5)) / 2e-5
    pairs = zip(gradients[10.0], gradients[0.0], direction, strict=True)
    added = sum(float(((a - b) * d).sum()) for a, b, d in pairs)
    assert abs(slope) > 0.01
    assert added == pytest.approx(slope, rel=1e-4)


def test_the_gain_is_that_of_the_jacobian(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """Power iteration against the spectral radius of every graph's dense Jacobian."""
    batch = make_batch((5, 7), seed=3)
    config = make_config("aggregator=avg", "aggregator.hidden=[]", "state=[2]")
    propagation = make_learner(config, train=batch).propagation
    (zero,) = propagation.network.zero_states(batch)
    gain = Gain.estimate(lambda x: propagation.transit(x, batch), [zero], batch, iterations=2000)
    size = batch.num_nodes * 2

    def transit(flat: torch.Tensor) -> torch.Tensor:
        return propagation.transit([flat.view(-1, 2)], batch)[0].flatten()

    jacobian = torch.autograd.functional.jacobian(transit, zero.flatten())
    assert jacobian.shape == (size, size)
    for graph in range(2):
        of_graph = 2 * batch.nodes_of(torch.tensor([graph]))[:, None] + torch.arange(2)
        rows = of_graph.flatten()
        values = torch.linalg.eigvals(jacobian[rows][:, rows])
        dominant = values[values.abs().argmax()]
        assert abs(float(dominant.imag)) < 1e-9, "a real one, so that power iteration settles"
        assert float(gain[graph]) == pytest.approx(float(dominant.abs()), rel=1e-3)


def test_karate_is_separated_in_two_dimensions(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    """The shipped recipe: three layers, the last state in the plane, the members told apart.

    All 34 of them as a rule; from one rounding to another, one or two may be missing.
    """
    config = make_config("dataset=karate", recipe=True)
    assert (config.layers, config.state[-1]) == (3, 2)
    (task,) = make_tasks(config)
    fit = UnitFit(task)
    result = fit.fit(lambda *_: None, lambda: False)
    assert result.state == FINISHED
    assert result.from_zero["accuracy"] >= 32 / 34
    assert (RunFolder(task.run).unit(task.unit.name) / "states.npz").is_file()


def test_generated_datasets_are_made_anew_for_every_seed(make_config: MakeConfig) -> None:
    config = make_config("dataset=clique", "dataset.graphs=3", "protocol.seeds=3", "seed=5")
    folds = make_folds(config)
    assert [f.unit.name for f in folds] == [f"fold-00-seed-{k}" for k in range(3)]
    assert [f.unit.seed for f in folds] == [5, 6, 7]
    assert len({f.dataset.fingerprint() for f in folds}) == 3
    config = make_config("protocol.seeds=2", "protocol.folds=3")
    folds = make_folds(config)
    assert len({id(f.dataset) for f in folds}) == 1
    assert len({f.unit.name for f in folds}) == 6


def test_ordinary_layers_put_out_what_is_normalised_and_activated(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """ReLU after normalisation, for the next layer as for f_r: as GIN has it."""
    words = ("propagation=layers", "aggregator=gin", "layers=2", "state=[4]")
    config = make_config(*words, "propagation.norm=batch", "propagation.activation=relu")
    learner = make_learner(config, train=make_batch())
    batch = learner.parts["train"].batch
    learner.network.train()
    assert isinstance(learner.propagation, Layers)
    _, transits = learner.propagation.propagate(batch)
    nothing = batch.features.new_zeros(batch.num_nodes, 0)
    label = batch.features
    for transition, found in zip(learner.network.transitions, transits, strict=True):
        raw = transition(nothing, label, batch)
        label = ((raw - raw.mean(0)) / (raw.var(0, correction=0) + 1e-5).sqrt()).relu()
        torch.testing.assert_close(found, label)
