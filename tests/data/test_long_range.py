"""Generated tasks whose answer lies many hops away: chains, rings and trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.data import load_dataset, make_splits
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.errors import UserError
from lpgnn_cli.training.parts import fit_scaler, make_parts

Configs = Callable[..., DatasetConfig]
TASKS = {
    "chains": {"length": 7, "chains": 5},
    "ring": {"graphs": 20, "held_out": 10},
    "tree": {"graphs": 60, "held_out": 10, "depth": 3},
}


def hops(batch: GraphBatch, start: int, steps: int) -> torch.Tensor:
    """Which nodes a message from `start` has reached after so many steps."""
    reached = torch.zeros(batch.num_nodes, dtype=torch.bool)
    reached[start] = True
    for _ in range(steps):
        arrived = reached[batch.arcs.source]
        reached[batch.arcs.target[arrived]] = True
    return reached


@pytest.mark.parametrize("name", TASKS)
def test_the_same_seed_gives_the_same_data(name: str, dataset_config: Configs) -> None:
    config = dataset_config(name, **TASKS[name])
    first, again, other = (load_dataset(config, None, seed) for seed in (3, 3, 4))
    assert first.seeded
    assert first.fingerprint() == again.fingerprint()
    if first.masks is None:
        assert first.fingerprint() != other.fingerprint()
    else:
        assert again.masks is not None
        assert other.masks is not None
        assert first.masks.fingerprint() == again.masks.fingerprint()
        assert first.masks.fingerprint() != other.masks.fingerprint()


def test_chains_are_those_of_the_field(dataset_config: Configs) -> None:
    dataset = load_dataset(dataset_config("chains", length=10), None, 0)
    batch, masks = dataset.batch, dataset.masks
    assert (batch.num_graphs, batch.num_nodes, batch.num_arcs) == (40, 400, 720)
    assert batch.features.shape == (400, 100)
    heads = batch.graph_ptr[:-1]
    assert torch.equal(batch.features.nonzero()[:, 0], heads), "heads alone know anything"
    assert torch.equal(batch.features[heads].argmax(1), batch.targets[heads])
    assert torch.equal(batch.targets.view(40, 10), batch.targets[heads][:, None].expand(40, 10))
    assert masks is not None
    assert [int(m.sum()) for m in (masks.train, masks.val, masks.test)] == [20, 40, 340]
    assert not dataset.continuous.any(), "one-hots stay as they are"
    tail = 9
    assert not hops(batch, 0, 8)[tail]
    assert hops(batch, 0, 9)[tail]


def test_chains_one_way(dataset_config: Configs) -> None:
    batch = load_dataset(dataset_config("chains", length=4, directed=True), None, 0).batch
    assert batch.num_arcs == 40 * 3
    assert hops(batch, 0, 3)[:5].tolist() == [True] * 4 + [False]
    assert int(hops(batch, 3, 9).sum()) == 1


@pytest.mark.parametrize("size", [2, 3, 6, 60])
def test_rings(size: int, dataset_config: Configs) -> None:
    config = dataset_config("ring", nodes=size, graphs=50, held_out=10)
    dataset = load_dataset(config, None, 0)
    batch = dataset.batch
    assert batch.num_graphs == 70
    assert set(batch.arcs.in_degree.tolist()) == {1 if size == 2 else 2}
    first = batch.graph_ptr[:-1]
    source = first + size // 2
    assert torch.equal(batch.features[source].argmax(1), batch.targets[first])
    assert torch.equal(batch.features[source].sum(1), torch.ones(70))
    assert not batch.features[first].any()
    assert hops(batch, size // 2, size // 2)[0]
    assert not hops(batch, size // 2, size // 2 - 1)[0]
    assert dataset.scored is not None
    assert torch.equal(dataset.scored, first)
    assert dataset.parts is not None
    for part in dataset.parts.values():
        assert len(set(torch.bincount(batch.targets[first[part]], minlength=5).tolist())) == 1


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_trees(depth: int, dataset_config: Configs) -> None:
    config = dataset_config("tree", depth=depth, graphs=60, held_out=10)
    dataset = load_dataset(config, None, 0)
    batch, leaves = dataset.batch, 2**depth
    nodes = 2 * leaves - 1
    assert batch.num_nodes == 80 * nodes
    features = batch.features.view(80, nodes, 2, leaves)
    keys = features[:, leaves - 1 :, 0].argmax(2)
    values = features[:, leaves - 1 :, 1].argmax(2)
    asked = features[:, 0, 0].argmax(1)
    answer = values[keys == asked[:, None]]
    assert torch.equal(answer, batch.targets.view(80, nodes)[:, 0])
    assert not features[:, 1 : leaves - 1].any()
    assert not features[:, 0, 1].any()
    assert len({tuple(row) for row in features.flatten(1).tolist()}) == 80, "no tree twice"
    assert hops(batch, nodes - 1, depth)[0]
    assert not hops(batch, nodes - 1, depth - 1)[0]
    assert int(hops(batch, 0, depth).sum()) == 1, "arcs lead to the root"
    both = load_dataset(dataset_config("tree", depth=2, graphs=9, directed=False), None, 0).batch
    assert int(hops(both, 0, 4).sum()) == 7


def test_small_trees_are_all_there_once(dataset_config: Configs) -> None:
    dataset = load_dataset(dataset_config("tree", depth=2), None, 0)
    assert dataset.parts is not None
    assert {name: len(part) for name, part in dataset.parts.items()} == {
        "train": 78,
        "val": 9,
        "test": 9,
    }


@pytest.mark.parametrize("name", ["ring", "tree"])
def test_one_node_of_each_graph_is_scored(name: str, train_config: Callable[..., Any]) -> None:
    words = [f"dataset.{key}={value}" for key, value in TASKS[name].items()]
    config = train_config(f"dataset={name}", *words)
    dataset = load_dataset(config.dataset, None, 0)
    (split,) = make_splits(config.protocol, dataset, 0)
    scaler = fit_scaler(config, dataset, split)
    parts = make_parts(config, dataset, split, scaler, torch.device("cpu"))
    for part in parts.values():
        assert part.scored is not None
        assert torch.equal(part.scored, part.batch.graph_ptr[:-1])
    assert dataset.scored is not None
    assert torch.equal(
        parts["train"].targets, Part(dataset.batch, dataset.scored).targets[: len(split.train)]
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["chains", "dataset.columns=2", "dataset.classes=3"], "dataset.columns must be at least"),
        (["chains", "dataset.labelled=0.9", "dataset.validation=0.1"], "leave nothing to test"),
        (["chains", "dataset.length=2", "dataset.chains=1"], "leave a part without any"),
        (["ring", "dataset.nodes=1"], "dataset.nodes must be at least 2"),
        (["tree", "dataset.depth=10"], "set a smaller dataset.graphs"),
        (["ring", "protocol=masks"], "ring has no masks of training"),
        (["mutag", "protocol=masks"], "has classes of graphs, not of nodes"),
        (["karate", "protocol=masks", "protocol.test=0.1"], "set both or none"),
        (["karate", "protocol=masks", "protocol.test=0.6", "protocol.validation=0.5"], "leave"),
    ],
)
def test_what_cannot_be_made(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", f"dataset={words[0]}", *words[1:], "tracking=none"]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_rings_divided_by_their_scored_nodes(train_config: Callable[..., Any]) -> None:
    shares = ["protocol.validation=0.2", "protocol.test=0.2"]
    config = train_config("dataset=ring", "dataset.graphs=30", "protocol=masks", *shares)
    dataset = load_dataset(config.dataset, None, 0)
    (split,) = make_splits(config.protocol, dataset, 0)
    assert dataset.scored is not None
    assert set(split.test.tolist()) <= set(dataset.scored.tolist())


def test_too_large_is_said_before_it_is_made(dataset_config: Configs) -> None:
    with pytest.raises(UserError, match="would have"):
        load_dataset(dataset_config("tree", depth=8), None, 0)
