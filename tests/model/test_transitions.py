"""Every transition: gradients, formulas, symmetries, options; factored forms against plain ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from lpgnn_cli.config.compose import compose, conf_dir
from lpgnn_cli.config.model import (
    AGGREGATORS,
    AggregatorConfig,
    ArcMlpConfig,
    DiffusionConfig,
    FilterConfig,
    GatConfig,
    GinConfig,
)
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.transitions import Transition, build_transition
from lpgnn_cli.ops import Arcs

BatchMaker = Callable[..., GraphBatch]

STATE, OUT = 3, 4
SPECIAL: dict[str, tuple[type[AggregatorConfig], dict[str, Any]]] = {
    "sum": (ArcMlpConfig, {"own_state": True}),
    "avg": (ArcMlpConfig, {"own_state": True}),
    "gin": (GinConfig, {"eps": 0.3, "train_eps": True}),
    "gcn": (AggregatorConfig, {}),
    "sage": (AggregatorConfig, {}),
    "gat": (GatConfig, {"heads": 2, "combine": "mean"}),
    "selection": (FilterConfig, {"taps": 3}),
    "median": (FilterConfig, {"taps": 3}),
    "none": (AggregatorConfig, {}),
    "diffusion": (
        DiffusionConfig,
        {
            "operator": "symmetric",
            "self_loops": True,
            "own_state": True,
            "mixing": "learnt",
            "neighbour_labels": True,
            "label_gate": True,
            "label_scale": 1.0,
            "bias": True,
        },
    ),
}
every_transition = pytest.mark.parametrize("name", SPECIAL)


def config_of(name: str, **overrides: Any) -> Any:
    schema, special = SPECIAL[name]
    common = {
        "hidden": [5],
        "activation": "tanh",
        "output_activation": "tanh",
        "dropout": 0.0,
        "norm": "none",
    }
    return schema(**{"name": name, **common, **special, **overrides})


def build(
    name: str, batch: GraphBatch, state: int = STATE, out: int = OUT, **overrides: Any
) -> Transition:
    torch.manual_seed(0)
    return build_transition(
        config_of(name, **overrides),
        state_size=state,
        label_size=batch.features.shape[1],
        arc_size=batch.arc_in.shape[1],
        out_size=out,
    ).double()


def states_of(batch: GraphBatch, size: int = STATE) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch.num_nodes, size, dtype=torch.float64, generator=generator)


def with_arc_labels(batch: GraphBatch, arc_in: Tensor, arc_out: Tensor) -> GraphBatch:
    return replace(batch, arc_in=arc_in, arc_out=arc_out)


# Gradients


@every_transition
@pytest.mark.parametrize("arcs", [20, 0], ids=["arcs", "no arcs"])
@pytest.mark.parametrize("output", ["tanh", "identity"])
def test_gradients_for_states_labels_arc_labels_and_weights(
    make_batch: BatchMaker, name: str, arcs: int, output: str
) -> None:
    batch = make_batch(arcs=arcs)
    transition = build(name, batch, output_activation=output)
    parameters = {key: p.detach() for key, p in transition.named_parameters()}

    def apply(x: Tensor, label: Tensor, arc_in: Tensor, arc_out: Tensor, *theta: Tensor) -> Tensor:
        named = dict(zip(parameters, theta, strict=True))
        inputs = (x, label, with_arc_labels(batch, arc_in, arc_out))
        found: Tensor = functional_call(transition, named, inputs)
        return found

    arguments = (states_of(batch), batch.features, batch.arc_in, batch.arc_out)
    tensors = [t.clone().requires_grad_() for t in (*arguments, *parameters.values())]
    assert gradcheck(apply, tensors, fast_mode=True)


@every_transition
def test_second_derivatives_for_the_states(make_batch: BatchMaker, name: str) -> None:
    batch = make_batch(nodes=5, arcs=6)
    transition = build(name, batch)
    x = states_of(batch).requires_grad_()
    assert gradgradcheck(lambda x: transition(x, batch.features, batch), x, fast_mode=True)


# The factored first layer, and the last layer on nodes, against rows concatenated per arc


@pytest.mark.parametrize("name", ["sum", "avg"])
@pytest.mark.parametrize("output", ["tanh", "identity"])
@pytest.mark.parametrize("hidden", [[], [6], [6, 5]], ids=str)
@pytest.mark.parametrize("own_state", [True, False])
@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
@pytest.mark.parametrize("arc_labels", [2, 0])
def test_factored_arc_mlp_matches_the_concatenation(
    make_batch: BatchMaker,
    name: str,
    output: str,
    hidden: list[int],
    own_state: bool,
    norm: str,
    arc_labels: int,
) -> None:
    batch = make_batch(arc_labels=arc_labels)
    options: dict[str, Any] = {"hidden": hidden, "own_state": own_state, "norm": norm}
    transition = build(name, batch, output_activation=output, **options)
    x = states_of(batch).requires_grad_()
    source, target = batch.arcs.source, batch.arcs.target
    arguments = [x[source], batch.features[source], batch.arc_out, batch.arc_in]
    arguments += [x[target]] if own_state else []
    rows = torch.cat([*arguments, batch.features[target]], dim=1)
    h: Any = transition.h
    for linear, layer in zip(h.linears, [*h.hidden_layers, None], strict=True):
        rows = linear(rows) if layer is None else layer(linear(rows))
    messages = rows.tanh() if output == "tanh" else rows
    plain = torch.zeros(batch.num_nodes, OUT, dtype=torch.float64).index_add(0, target, messages)
    if name == "avg":
        plain = plain / batch.arcs.in_degree.clamp(min=1).unsqueeze(1)

    weights = [x, *transition.parameters()]
    wanted = torch.autograd.grad(plain.square().sum(), weights)
    factored = transition(x, batch.features, batch)
    torch.testing.assert_close(factored, plain, rtol=0, atol=1e-12)
    found = torch.autograd.grad(factored.square().sum(), weights)
    for gradient, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["sum", "avg"])
@pytest.mark.parametrize("own_state", [True, False])
@pytest.mark.parametrize("arc_labels", [2, 0])
@pytest.mark.parametrize("state", [STATE, 0])
def test_labels_by_kind_of_arc_are_the_labels_of_each_arc(
    make_batch: BatchMaker, name: str, own_state: bool, arc_labels: int, state: int
) -> None:
    batch = make_batch(nodes=40, arcs=90, labels=3, arc_labels=arc_labels)
    kinds = torch.eye(3).double()[torch.arange(40) % 3]
    labels = torch.eye(arc_labels).double().repeat(90, 1)[:90]
    batch = replace(batch, features=kinds, arc_in=labels, arc_out=labels.flip(0))
    assert batch.alike_arcs is not None
    options: dict[str, Any] = {"own_state": own_state, "output_activation": "identity"}
    transition = build(name, batch, state=state, **options)
    x = states_of(batch, state).requires_grad_()
    inputs = [*([x] if state else []), *transition.parameters()]

    by_kind = transition(x, batch.features, batch)
    by_arc = transition(x, batch.features.clone(), batch)

    torch.testing.assert_close(by_kind, by_arc, rtol=0, atol=1e-13)
    for found, expected in zip(
        torch.autograd.grad(by_kind.square().sum(), inputs),
        torch.autograd.grad(by_arc.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


# Formulas, node by node


def neighbours(batch: GraphBatch, v: int) -> list[tuple[int, Tensor]]:
    """The sources of the arcs into v, with the labels [l_(v,u), l_(u,v)] of each arc."""
    labels = torch.cat([batch.arc_out, batch.arc_in], dim=1)
    arcs = range(int(batch.arcs.ptr[v]), int(batch.arcs.ptr[v + 1]))
    return [(int(batch.arcs.source[a]), labels[a]) for a in arcs]


def gin_by_hand(t: Any, z: Tensor, batch: GraphBatch, v: int) -> Tensor:
    near = neighbours(batch, v)
    total = (1 + t.eps) * z[v] + sum(z[u] for u, _ in near)
    arc_total = sum((e for _, e in near), torch.zeros(4, dtype=z.dtype))
    return mlp(t.h, torch.cat([total, arc_total])).tanh()


def gcn_by_hand(t: Any, z: Tensor, batch: GraphBatch, v: int) -> Tensor:
    near = neighbours(batch, v)
    out_degree = torch.bincount(batch.arcs.source, minlength=batch.num_nodes)
    total = mlp(t.h_own, z[v])
    for u, e in near:
        c = 1 / (out_degree[u] * len(near)).double().sqrt()
        total = total + c * (mlp(t.h_neighbour, z[u]) + t.arc_weight @ e)
    return total.tanh()


def sage_by_hand(t: Any, z: Tensor, batch: GraphBatch, v: int) -> Tensor:
    messages = [torch.cat([z[u], e]) for u, e in neighbours(batch, v)]
    size = z.shape[1] + 4
    highest = torch.stack(messages).amax(dim=0) if messages else torch.zeros(size, dtype=z.dtype)
    return mlp(t.h, torch.cat([z[v], highest])).tanh()


def gat_by_hand(t: Any, z: Tensor, batch: GraphBatch, v: int) -> Tensor:
    near = [*neighbours(batch, v), (v, torch.zeros(4, dtype=z.dtype))]
    value = [mlp(t.h, row).view(t.heads, OUT) for row in z]
    heads = []
    for k in range(t.heads):
        scores = torch.stack(
            [
                torch.dot(t.source_score_KO[k], value[u][k])
                + torch.dot(t.target_score_KO[k], value[v][k])
                + t.arc_score[k] @ e
                for u, e in near
            ]
        )
        alpha = torch.nn.functional.leaky_relu(scores, 0.2).softmax(dim=0)
        heads.append(sum(a * value[u][k] for a, (u, _) in zip(alpha, near, strict=True)))
    mean: Tensor = sum(heads) / t.heads
    return mean.tanh()


def filter_signal(t: Any, z: Tensor, batch: GraphBatch) -> Tensor:
    rows = []
    for v in range(batch.num_nodes):
        labels = [e for _, e in neighbours(batch, v)]
        mean = torch.stack(labels).mean(dim=0) if labels else torch.zeros(4, dtype=z.dtype)
        rows.append(mlp(t.h, torch.cat([z[v], mean])))
    return torch.stack(rows)


def selection_by_hand(t: Any, z: Tensor, batch: GraphBatch, v: int) -> Tensor:
    adjacency = torch.zeros(batch.num_nodes, batch.num_nodes, dtype=z.dtype)
    adjacency.index_put_(
        (batch.arcs.target, batch.arcs.source), torch.ones((), dtype=z.dtype), accumulate=True
    )
    in_root = adjacency.sum(dim=1).clamp(min=1).rsqrt()
    out_root = adjacency.sum(dim=0).clamp(min=1).rsqrt()
    shift = in_root[:, None] * adjacency * out_root
    signal = filter_signal(t, z, batch)
    total = sum(
        torch.linalg.matrix_power(shift, k) @ signal[:, k * OUT : (k + 1) * OUT]
        for k in range(t.taps)
    )
    assert isinstance(total, Tensor)
    return total[v].tanh()


def median_by_hand(t: Any, z: Tensor, batch: GraphBatch, v: int) -> Tensor:
    signal = filter_signal(t, z, batch)
    seen, total = {v}, torch.zeros(OUT, dtype=z.dtype)
    for k in range(t.taps):
        total = total + t.tap_weight_TO[k] * signal[sorted(seen)].median(dim=0).values
        seen |= {u for w in seen for u, _ in neighbours(batch, w)}
    return total.tanh()


def mlp(h: Any, row: Tensor) -> Tensor:
    for linear in h.linears[:-1]:
        row = linear(row).tanh()
    result: Tensor = h.linears[-1](row)
    return result


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("gin", gin_by_hand),
        ("gcn", gcn_by_hand),
        ("sage", sage_by_hand),
        ("gat", gat_by_hand),
        ("selection", selection_by_hand),
        ("median", median_by_hand),
        ("none", lambda t, z, batch, v: mlp(t.h, z[v]).tanh()),
    ],
)
def test_transition_follows_its_formula(
    make_batch: BatchMaker, name: str, by_hand: Callable[..., Tensor]
) -> None:
    batch = make_batch()
    transition = build(name, batch)
    x = states_of(batch)
    z = torch.cat([x, batch.features], dim=1)
    expected = torch.stack([by_hand(transition, z, batch, v) for v in range(batch.num_nodes)])
    torch.testing.assert_close(
        transition(x, batch.features, batch), expected, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("alike", [False, True], ids=["nodes", "distinct rows"])
def test_diffusion_multiplies_what_labels_say(make_batch: BatchMaker, alike: bool) -> None:
    batch = make_batch(nodes=4000, labels=50)
    if alike:
        batch = batch.with_features(torch.eye(50).double()[torch.arange(4000) % 9])
    assert (batch.distinct_features is not None) == alike
    plain: dict[str, Any] = {
        "hidden": [],
        "neighbour_labels": False,
        "output_activation": "identity",
    }
    transition: Any = build("diffusion", batch, state=0, **plain)
    first, gate = transition.label_way.first, transition.gate
    expected = (batch.features @ first.weight.t() + first.bias) * gate(batch.features)
    found = transition(states_of(batch, 0), batch.features, batch)
    torch.testing.assert_close(found, expected)
    ungated: Any = build("diffusion", batch, state=0, label_gate=False, **plain)
    assert ungated.gate is None


# Symmetries and sizes


@every_transition
def test_renumbering_nodes_renumbers_the_output(make_batch: BatchMaker, name: str) -> None:
    batch = make_batch()
    transition = build(name, batch)
    x = states_of(batch)
    old_of_new = torch.randperm(batch.num_nodes, generator=torch.Generator().manual_seed(1))
    new_of_old = old_of_new.argsort()
    order = torch.argsort(new_of_old[batch.arcs.target], stable=True)
    moved = replace(
        batch,
        features=batch.features[old_of_new],
        arcs=Arcs.from_sorted(
            new_of_old[batch.arcs.source][order],
            new_of_old[batch.arcs.target][order],
            batch.num_nodes,
        ),
        arc_in=batch.arc_in[order],
        arc_out=batch.arc_out[order],
    )
    torch.testing.assert_close(
        transition(x[old_of_new], moved.features, moved),
        transition(x, batch.features, batch)[old_of_new],
    )


@every_transition
@pytest.mark.parametrize(
    ("state", "labels", "arc_labels"), [(0, 2, 2), (3, 0, 0), (0, 0, 0), (3, 2, 0)]
)
def test_any_input_may_be_absent(
    make_batch: BatchMaker, name: str, state: int, labels: int, arc_labels: int
) -> None:
    batch = make_batch(labels=labels, arc_labels=arc_labels)
    transition = build(name, batch, state=state)
    out = transition(states_of(batch, state), batch.features, batch)
    assert out.shape == (batch.num_nodes, OUT)
    assert out.isfinite().all()
    assert all(block.shape[1] == state for block in transition.state_weights())
    out.sum().backward()


@every_transition
def test_state_weights_are_views_that_hold_all_influence_of_the_state(
    make_batch: BatchMaker, name: str
) -> None:
    batch = make_batch()
    transition = build(name, batch)
    x = states_of(batch)
    assert not torch.equal(
        transition(x, batch.features, batch), transition(0 * x, batch.features, batch)
    )
    with torch.no_grad():
        for block in transition.state_weights():
            block.zero_()
    torch.testing.assert_close(
        transition(x, batch.features, batch), transition(0 * x, batch.features, batch)
    )


@every_transition
def test_runs_on_the_meta_device(make_batch: BatchMaker, name: str) -> None:
    if name == "median":
        pytest.skip("the sizes of neighbourhoods depend on data, which meta tensors have not")
    batch = make_batch().to("meta")
    transition = build(name, batch).to("meta")
    x = torch.zeros(batch.num_nodes, STATE, dtype=torch.float64, device="meta", requires_grad=True)
    transition(x, batch.features, batch).sum().backward()
    assert x.grad is not None
    assert all(p.grad is not None for p in transition.parameters())


# Options


@every_transition
@pytest.mark.parametrize(
    "overrides",
    [
        {"hidden": [7]},
        {"hidden": []},
        {"activation": "relu"},
        {"output_activation": "identity"},
        {"dropout": 0.5},
        {"norm": "layer"},
        {"norm": "batch"},
    ],
    ids=str,
)
def test_every_option_changes_the_output(
    make_batch: BatchMaker, name: str, overrides: dict[str, Any]
) -> None:
    batch = make_batch()
    x = states_of(batch)
    plain = build(name, batch)(x, batch.features, batch)
    changed = build(name, batch, **overrides)(x, batch.features, batch)
    assert changed.shape == plain.shape
    assert not torch.allclose(changed, plain)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("sum", {"own_state": False}),
        ("gin", {"eps": 0.0}),
        ("gat", {"heads": 3, "combine": "mean"}),
        ("selection", {"taps": 2}),
        ("median", {"taps": 2}),
    ],
)
def test_special_options_change_the_output(
    make_batch: BatchMaker, name: str, overrides: dict[str, Any]
) -> None:
    batch = make_batch()
    x = states_of(batch)
    plain = build(name, batch)(x, batch.features, batch)
    assert not torch.allclose(build(name, batch, **overrides)(x, batch.features, batch), plain)


def test_gin_learns_eps_only_when_told_to(make_batch: BatchMaker) -> None:
    batch = make_batch()
    fixed: Any = build("gin", batch, train_eps=False)
    learnt: Any = build("gin", batch, train_eps=True)
    assert not fixed.eps.requires_grad
    assert learnt.eps.requires_grad


def test_every_option_has_a_file_an_implementation_and_its_settings() -> None:
    files = {path.stem for path in (conf_dir() / "aggregator").glob("[!_]*.yaml")}
    assert files == set(SPECIAL) == set(AGGREGATORS.by_name)
    for name, (schema, _) in SPECIAL.items():
        config = compose("train", [f"aggregator={name}"]).aggregator
        assert type(config) is AGGREGATORS.by_name[name].settings is schema
        build_transition(config, state_size=STATE, label_size=2, arc_size=2, out_size=OUT)


def test_heads_side_by_side_are_attentions_of_their_own(make_batch: BatchMaker) -> None:
    """With the same weights, each half of the output is what one head alone puts out."""
    batch = make_batch()
    both: Any = build("gat", batch, heads=2, combine="concat")
    states = torch.randn(batch.num_nodes, STATE, dtype=torch.float64)
    together = both(states, batch.features, batch)
    assert together.shape == (batch.num_nodes, OUT)
    for head in range(2):
        alone: Any = build("gat", batch, heads=1, combine="mean", out=OUT // 2)
        rows = slice(head * OUT // 2, (head + 1) * OUT // 2)
        weights = both.state_dict()
        for name, value in weights.items():
            if "score" in name:
                weights[name] = value[head : head + 1]
            elif value.shape[0] == OUT:
                weights[name] = value[rows]
        alone.load_state_dict(weights)
        torch.testing.assert_close(alone(states, batch.features, batch), together[:, rows])
