"""The partial derivatives of the Lagrangian, by hand: loops over nodes and arcs in numpy.

For  L = sum over v in S of loss(f_r(x_v), y_v) + sum over v of lambda_v G(x_v - f_a,v)

    dL/dx_v      = loss' f_r' + lambda_v G'_v (1 - f'_a,v) - sum over w with v in ne[w] of
                   lambda_w G'_w f'_a,w
    dL/dtheta_a  = - sum over v of lambda_v G'_v f'_a,v
    dL/dtheta_r  = sum over v in S of loss' f_r'
    dL/dlambda_v = G_v

The arcs are a list here and the MLP sees plain concatenations: nothing of ops/ is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.propagation.lagrangian import Gradient

from ..conftest import present
from .conftest import Learner, MakeConfig, MakeLearner, h_of

Array = NDArray[np.float64]
Labels = tuple[Array, dict[tuple[int, int], Array]]
EPS = 0.05

NODES, LABELS, ARC_LABELS, CLASSES = 6, 2, 1, 3
# Node 5 has no arcs, 3 -> 4 is there in one direction only.
ARCS = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0), (3, 4), (2, 3), (3, 2)]
SUPERVISED = [0, 2, 3, 5]
TARGETS = [0, 1, 2, 2, 1, 0]

G: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "lin": (lambda r: r, lambda r: np.ones_like(r)),
    "squared": (lambda r: r**2, lambda r: 2 * r),
    "abs_eps": (
        lambda r: np.maximum(np.abs(r) - EPS, 0),
        lambda r: np.sign(r) * (np.abs(r) > EPS),
    ),
}


@pytest.fixture
def labels() -> Labels:
    random = np.random.RandomState(3)
    return random.randn(NODES, LABELS), {arc: random.randn(ARC_LABELS) for arc in ARCS}


@pytest.fixture
def batch(labels: Labels) -> GraphBatch:
    of_nodes, of_arcs = labels
    source, target = zip(*ARCS, strict=True)
    return GraphBatch.from_arcs(
        features=torch.from_numpy(of_nodes),
        source=torch.tensor(source),
        target=torch.tensor(target),
        arc_labels=torch.from_numpy(np.stack([of_arcs[arc] for arc in ARCS])),
        graph_ptr=torch.tensor([0, NODES]),
        targets=torch.tensor(TARGETS),
        target_level="node",
        num_classes=CLASSES,
    )


@dataclass
class Gradients:
    """One entry per layer, but for the readout."""

    states: list[Array]
    multipliers: list[Array]
    transitions: list[dict[str, Array]]
    readout: dict[str, Array]
    lagrangian: float


def by_hand(
    weights: dict[str, Array],
    x: list[Array],
    multipliers: list[Array],
    labels: Labels,
    g: str,
    *,
    rho: float = 0.0,
    divisor: float = 1.0,
) -> Gradients:
    of_nodes, of_arcs = labels
    value, slope = G[g]
    layers = len(x)
    of_x = [np.zeros_like(state) for state in x]
    of_multipliers, of_transitions, total = [], [], 0.0

    for k in range(layers):
        w1, b1 = weights[f"{k}.w1"], weights[f"{k}.b1"]
        w2, b2 = weights[f"{k}.w2"], weights[f"{k}.b2"]
        label = of_nodes if k == 0 else x[k - 1]
        state_size, label_size = x[k].shape[1], label.shape[1]
        nothing = np.zeros(ARC_LABELS)
        z, t = {}, {}
        f_a = np.zeros_like(x[k])
        for u, v in ARCS:
            opposite = of_arcs.get((v, u), nothing)
            z[u, v] = np.concatenate(
                [x[k][u], label[u], opposite, of_arcs[u, v], x[k][v], label[v]]
            )
            t[u, v] = np.tanh(w1 @ z[u, v] + b1)
            f_a[v] += w2 @ t[u, v] + b2

        r = x[k] - f_a
        total += (multipliers[k] * value(r)).sum() / divisor + rho / 2 * (r**2).sum() / divisor
        of_g = value(r)
        per_node = multipliers[k].shape[1] == 1
        of_multipliers.append((of_g.sum(1, keepdims=True) if per_node else of_g) / divisor)

        pull = (multipliers[k] * slope(r) + rho * r) / divisor  # lambda_v G'_v
        of_x[k] += pull
        gradient = {n: np.zeros_like(weights[f"{k}.{n}"]) for n in ("w1", "b1", "w2", "b2")}
        for u, v in ARCS:
            delta = (w2.T @ pull[v]) * (1 - t[u, v] ** 2)
            gradient["w2"] -= np.outer(pull[v], t[u, v])
            gradient["b2"] -= pull[v]
            gradient["w1"] -= np.outer(delta, z[u, v])
            gradient["b1"] -= delta
            of_z = w1.T @ delta
            of_u, of_u_label, _, of_v, of_v_label = np.split(
                of_z,
                np.cumsum([state_size, label_size, 2 * ARC_LABELS, state_size]),
            )
            of_x[k][u] -= of_u
            of_x[k][v] -= of_v
            if k > 0:
                of_x[k - 1][u] -= of_u_label
                of_x[k - 1][v] -= of_v_label
        of_transitions.append(gradient)

    w, b = weights["r.w"], weights["r.b"]
    of_readout = {"w": np.zeros_like(w), "b": np.zeros_like(b)}
    for v in SUPERVISED:
        scores = w @ x[-1][v] + b
        p = np.exp(scores - scores.max())
        p /= p.sum()
        total -= np.log(p[TARGETS[v]])
        error = p - np.eye(CLASSES)[TARGETS[v]]
        of_readout["w"] += np.outer(error, x[-1][v])
        of_readout["b"] += error
        of_x[-1][v] += w.T @ error
    return Gradients(of_x, of_multipliers, of_transitions, of_readout, total)


def parameters(learner: Learner) -> dict[str, torch.Tensor]:
    network = learner.network
    named = {"r.w": network.readout.mlp.first.weight, "r.b": network.readout.mlp.first.bias}
    for k, transition in enumerate(network.transitions):
        h = h_of(transition)
        named |= {f"{k}.w1": h.first.weight, f"{k}.b1": h.first.bias}
        named |= {f"{k}.w2": h.last.weight, f"{k}.b2": h.last.bias}
    assert len(named) == len(list(network.parameters()))
    return named


def numpy(tensor: torch.Tensor | None) -> Array:
    found: Array = present(tensor).detach().numpy().copy()
    return found


def assert_close(found: Array | float, expected: Array | float, name: str = "") -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12, err_msg=name)


CASES: dict[str, tuple[str, list[str], dict[str, float]]] = {
    "lin": ("lin", ["g=lin"], {}),
    "squared": ("squared", ["g=squared"], {}),
    "abs_eps": ("abs_eps", ["g=abs_eps", f"g.eps={EPS}"], {}),
    "element": ("squared", ["g=squared", "propagation.multiplier=element"], {}),
    "rho": ("lin", ["g=lin", "propagation.rho=0.7"], {"rho": 0.7}),
    "mean": (
        "squared",
        ["g=squared", "propagation.constraint_reduction=mean", "propagation.rho=0.7"],
        {"rho": 0.7, "divisor": float(NODES)},
    ),
}


@pytest.mark.parametrize("sizes", [[4], [3, 4]], ids=["K=1", "K=2"])
@pytest.mark.parametrize("case", CASES)
def test_one_step_follows_the_four_partial_derivatives(
    case: str,
    sizes: list[int],
    labels: Labels,
    batch: GraphBatch,
    make_config: MakeConfig,
    make_learner: MakeLearner,
) -> None:
    g, overrides, terms = CASES[case]
    config = make_config(
        f"layers={len(sizes)}",
        f"state={sizes}",
        "aggregator.hidden=[5]",
        "readout=linear",
        "readout.source=state",
        "optim=sgd",
        "lr={theta:0.1,state:0.2,multiplier:0.3}",
        *overrides,
    )
    learner = make_learner(config, train=Part(batch, scored=torch.tensor(SUPERVISED)))
    assert isinstance(learner.propagation, Gradient)
    torch.manual_seed(1)
    variables = learner.propagation.variables
    with torch.no_grad():
        for state, multiplier in zip(
            variables.states.values, variables.multipliers.values, strict=True
        ):
            state.copy_(torch.randn_like(state))
            multiplier.copy_(torch.randn_like(multiplier))
    named = parameters(learner)
    theta = {name: numpy(p) for name, p in named.items()}
    x = [numpy(s) for s in variables.states.values]
    multipliers = [numpy(m) for m in variables.multipliers.values]
    expected = by_hand(theta, x, multipliers, labels, g, **terms)

    figures = learner.train_epoch(1, batch)

    assert_close(float(figures["train/lagrangian"]), expected.lagrangian)
    for k in range(len(sizes)):
        gradient = numpy(variables.states.values[k].grad)
        assert_close(gradient, expected.states[k])
        assert_close(numpy(variables.states.values[k]), x[k] - 0.2 * gradient)
        gradient = numpy(variables.multipliers.values[k].grad)
        assert_close(gradient, expected.multipliers[k])
        ascended = multipliers[k] + 0.3 * gradient
        assert_close(numpy(variables.multipliers.values[k]), ascended)
    of_theta = {f"r.{n}": value for n, value in expected.readout.items()}
    for k, gradients in enumerate(expected.transitions):
        of_theta |= {f"{k}.{n}": value for n, value in gradients.items()}
    for name, gradient in of_theta.items():
        assert_close(numpy(named[name].grad), gradient, name)
        descended = theta[name] - 0.1 * gradient
        assert_close(numpy(named[name]), descended, name)


def test_the_constraint_of_layer_1_reaches_the_states_of_layer_0(
    batch: GraphBatch, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    """With no multiplier on layer 0 its states feel layer 1 alone, by the labels they are there."""
    config = make_config("layers=2", "state=[3,4]", "aggregator.hidden=[5]", "readout=linear")
    config.readout.source = "state"
    learner = make_learner(config, train=batch)
    variables = learner.variables
    with torch.no_grad():
        variables.states.values[0].normal_()
        variables.states.values[1].normal_()
        variables.multipliers.values[0].zero_()
        variables.multipliers.values[1].fill_(1.0)
    learner.train_epoch(1, batch)
    gradient = present(variables.states.values[0].grad)
    assert bool((gradient[:5] != 0).all())
    assert bool((gradient[5] == 0).all()), "node 5 is in nobody's neighbourhood"
