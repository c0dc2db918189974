from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lpgnn_cli.config.compose import compose
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.network import DataShape, Network
from lpgnn_cli.model.readout import Readout


def test_nodes_are_normalised_before_they_are_pooled(
    make_batch: Callable[..., GraphBatch],
) -> None:
    words = ["recipe=none", "readout=linear", "readout.norm=batch", "readout.scale=0.5"]
    batch = make_batch()
    states = 3 + 7 * torch.randn(batch.num_nodes, 4)
    config = compose("train", words).readout
    readout = Readout(config, sizes=[4], classes=2, target_level="graph", nodes=5.0).train()
    centred = states - states.mean(dim=0)
    nodes = centred / (states.var(dim=0, correction=0) + 1e-5).sqrt()
    # Normalised, the nodes of the only graph sum to zero, unlike the graph's normalised sum.
    torch.testing.assert_close(nodes.sum(dim=0), torch.zeros(4), atol=1e-5, rtol=0)
    expected = readout.mlp(0.5 * nodes.sum(dim=0, keepdim=True))
    torch.testing.assert_close(readout([states], batch), expected)


def test_hidden_layers_on_nodes_come_before_the_sum(make_batch: Callable[..., GraphBatch]) -> None:
    words = ["recipe=none", "readout=linear", "readout.node_hidden=[5,3]"]
    batch = make_batch()
    states = torch.randn(batch.num_nodes, 4)
    config = compose("train", words).readout
    readout = Readout(config, sizes=[4], classes=2, target_level="graph", nodes=5.0)
    first, _, second, _ = readout.nodes
    nodes = torch.tanh(second(torch.tanh(first(states))))
    expected = readout.mlp(nodes.sum(dim=0, keepdim=True))
    torch.testing.assert_close(readout([states], batch), expected)


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_dropout_acts_whatever_the_hidden_layers(
    name: str, make_batch: Callable[..., GraphBatch]
) -> None:
    config = compose("train", ["recipe=none", f"readout={name}", "readout.dropout=0.5"]).readout
    batch = make_batch()
    states = torch.randn(batch.num_nodes, 64)
    readout = Readout(config, sizes=[64], classes=2, target_level="graph", nodes=5.0)
    readout.train()
    assert not torch.equal(readout([states], batch), readout([states], batch))
    readout.eval()
    assert torch.equal(readout([states], batch), readout([states], batch))


def test_neighbours_stand_beside_what_is_read(make_batch: Callable[..., GraphBatch]) -> None:
    words = ["recipe=none", "readout=linear", "readout.neighbours=true"]
    batch = make_batch()
    states = torch.randn(batch.num_nodes, 4)
    config = compose("train", words).readout
    readout = Readout(config, sizes=[4], classes=2, target_level="node", nodes=5.0)
    summed = torch.zeros_like(states).index_add(0, batch.arcs.target, states[batch.arcs.source])
    node_level = batch.with_targets(torch.zeros(batch.num_nodes, dtype=torch.int64), "node", 2)
    expected = readout.mlp(torch.cat([states, summed], dim=1))
    torch.testing.assert_close(readout([states], node_level), expected)


def test_the_label_says_what_is_read(make_batch: Callable[..., GraphBatch]) -> None:
    words = ["recipe=none", "readout=linear", "readout.norm=unit", "readout.label_gate=true"]
    batch = make_batch()
    states = torch.randn(batch.num_nodes, 4)
    config = compose("train", words).readout
    columns = batch.features.shape[1]
    readout = Readout(
        config, sizes=[4], classes=2, target_level="node", nodes=5.0, labels=columns
    ).to(batch.features)
    node_level = batch.with_targets(torch.zeros(batch.num_nodes, dtype=torch.int64), "node", 2)
    assert readout.gate is not None
    direction = states.to(batch.features) / states.norm(dim=1, keepdim=True)
    expected = readout.mlp(direction * readout.gate(batch.features))
    torch.testing.assert_close(readout([states.to(batch.features)], node_level), expected)


@pytest.mark.parametrize(("level", "source"), [("graph", "transition"), ("node", "state")])
def test_auto_reads_what_the_paper_reads(level: str, source: str) -> None:
    config = compose("train", ["recipe=paper", "dataset=mutag"]).readout
    assert Readout(config, sizes=[4], classes=2, target_level=level, nodes=5.0).source == source


def test_without_a_scale_sums_are_divided_by_the_nodes_of_a_graph() -> None:
    config = compose("train", ["recipe=none", "readout.scale=null"]).readout
    scales = [
        Readout(config, sizes=[4], classes=2, target_level=level, nodes=5.0).scale
        for level in ("graph", "node")
    ]
    assert scales == [0.2, 1.0]


def test_without_weights_the_states_are_the_scores(make_batch: Callable[..., GraphBatch]) -> None:
    words = ["recipe=none", "readout=linear", "readout.learnt=false", "state=[5]", "layers=2"]
    config = compose("train", words)
    batch = make_batch().with_targets(torch.arange(7) % 3, "node", 3)
    network = Network(config, DataShape.of(batch))
    assert network.state_sizes == [5, 3]
    assert not list(network.readout.parameters())
    states = [torch.randn(7, 5), torch.randn(7, 3)]
    assert torch.equal(network.read(states, states, batch), states[1])


@pytest.mark.parametrize(
    "words",
    [
        "readout=mlp",
        "readout=linear readout.neighbours=true",
        "readout=linear readout.label_gate=true",
    ],
)
def test_states_that_are_scores_are_read_as_they_are(words: str) -> None:
    with pytest.raises(UserError, match="takes the last states for scores"):
        compose("train", ["recipe=none", "readout.learnt=false", *words.split()])
