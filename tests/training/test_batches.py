"""Mini-batches of graphs: every graph keeps its own states, multipliers and optimiser rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from lpgnn_cli.data.batch import TargetLevel
from lpgnn_cli.data.part import Part
from lpgnn_cli.propagation import Step
from lpgnn_cli.training.epoch import train_epoch
from lpgnn_cli.training.fit import UnitFit

from .conftest import Learner, MakeBatch, MakeConfig, MakeLearner, MakeTasks

RULES = {
    "gradient": [],
    "gradient, sgd": ["optim=sgd", "optim.momentum=0.9", "lr.theta=1e-3"],
    "gradient, rmsprop": ["optim=rmsprop", "propagation.multiplier=element"],
    "warm-up": ["propagation.warmup=2", "propagation.multiplier_start=1"],
    "one_shot": ["propagation.updates=one_shot"],
}


def variables(learner: Learner) -> list[torch.Tensor]:
    held = learner.variables
    return [v.detach().clone() for v in (*held.states.values, *held.multipliers.values)]


def shuffled(
    learner: Learner, epoch: int, size: int, order: torch.Generator
) -> dict[str, torch.Tensor]:
    return train_epoch(learner.propagation, epoch, learner.parts["train"], size, order)


@pytest.mark.parametrize("rule", RULES)
def test_with_theta_held_batches_move_the_variables_as_the_full_batch_does(
    rule: str, make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """x and lambda of a graph depend on that graph alone: so does what moves them, moments and
    counts of steps included."""
    batch = make_batch((5, 6, 4, 7, 3), seed=2)
    words = "layers=2", "state=[3,2]", "propagation.loss_reduction=sum"
    config = make_config(*words, *RULES[rule])
    learners = [make_learner(config, train=batch) for _ in range(2)]
    for learner in learners:
        learner.propagation.step_theta = lambda: None
    order = torch.Generator().manual_seed(3)
    for epoch in range(1, 6):
        whole = learners[0].train_epoch(epoch)
        pieces = shuffled(learners[1], epoch, 2, order)
        for name in ("accuracy", "loss", "violation_mean", "violation_max", "multiplier_norm"):
            torch.testing.assert_close(whole[f"train/{name}"], pieces[f"train/{name}"])
    for mine, theirs in zip(*map(variables, learners), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
        assert float(mine.abs().max()) > 0


@pytest.mark.parametrize("level", ["graph", "node"])
@pytest.mark.parametrize(
    "words",
    [
        ["propagation=layers"],
        ["propagation=fixed_point", "propagation.gain=0.9", "propagation.gain_held_by=penalty"],
        ["propagation.states=frozen"],
        ["propagation.gain=0.9", "propagation.gain_held_by=penalty"],
        ["propagation.updates=one_shot"],
        [],
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [5, 50])
def test_a_batch_of_all_graphs_is_the_full_batch_to_the_last_bit(
    words: tuple[str, ...],
    level: TargetLevel,
    size: int,
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
) -> None:
    batch = make_batch((5, 6, 4, 7, 3), level=level)
    config = make_config("aggregator.dropout=0.2", *words)
    order = torch.Generator().manual_seed(0)
    weights = []
    for graphs in (None, size):
        learner = make_learner(config, train=batch)
        for epoch in (1, 2, 3):
            train_epoch(learner.propagation, epoch, learner.parts["train"], graphs, order)
        weights.append([p.detach() for p in learner.network.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.parametrize(
    "words", [["propagation=layers"], ["propagation=fixed_point"], []], ids=str
)
def test_every_graph_is_trained_on_once_per_epoch(
    words: tuple[str, ...],
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
) -> None:
    batch = make_batch((5, 6, 4, 7, 3))
    learner = make_learner(make_config(*words), train=batch)
    seen: list[int] = []
    step = learner.propagation.train_step

    def watched(epoch: int, part: Part, graphs: torch.Tensor | None = None) -> Step:
        assert graphs is not None
        assert part.batch.num_graphs == len(graphs) <= 2
        expected = batch.subset(graphs)
        assert torch.equal(part.batch.features, expected.features)
        assert torch.equal(part.targets, expected.targets)
        seen.extend(graphs.tolist())
        return step(epoch, part, graphs)

    learner.propagation.train_step = watched
    order = torch.Generator().manual_seed(1)
    orders = []
    for epoch in (1, 2):
        seen.clear()
        shuffled(learner, epoch, 2, order)
        assert sorted(seen) == [0, 1, 2, 3, 4]
        orders.append(list(seen))
    assert orders[0] != orders[1], "the order is drawn anew"


def test_scored_nodes_of_a_batch_are_those_of_its_graphs(make_batch: MakeBatch) -> None:
    batch = make_batch((3, 4, 2), level="node")
    part = Part(batch, scored=torch.tensor([8, 1, 4]))
    some = part.subset(torch.tensor([2, 0]))
    assert some.scored is not None
    assert some.scored.tolist() == [1, 3], "node 8 is the second of graph 2, node 1 that of graph 0"
    assert torch.equal(some.targets, batch.targets[[8, 1]])
    first, second = part.spans(2)
    assert first.scored is not None
    assert second.scored is not None
    assert (first.scored.tolist(), second.scored.tolist()) == ([1, 4], [1])
    assert torch.equal(second.targets, batch.targets[[8]])


@pytest.mark.parametrize(
    "words",
    [[], ["propagation.updates=one_shot"], ["optim=sgd", "optim.momentum=0.5"]],
    ids=["gradient", "one_shot", "sgd"],
)
def test_a_resumed_run_in_batches_equals_an_uninterrupted_one(
    words: tuple[str, ...], make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(
        "dataset=clique",
        "dataset.graphs=12",
        "optim.batch_graphs=3",
        "epochs=6",
        "lr.theta=1e-3",
        *words,
    )
    (task,) = make_tasks(config, "whole")
    whole = UnitFit(task)
    whole.fit(lambda *_: None, lambda: False)
    (task,) = make_tasks(config, "halves")
    first = UnitFit(replace(task, config=replace(config, epochs=3)))
    first.fit(lambda *_: None, lambda: False)
    second = UnitFit(task)
    assert second.progress.epoch == 3
    second.fit(lambda *_: None, lambda: False)
    expected, found = whole.propagation.state_dict(), second.propagation.state_dict()
    assert_equal(expected, found)


def assert_equal(expected: Any, found: Any) -> None:
    if isinstance(expected, torch.Tensor):
        assert torch.equal(expected, found)
    elif isinstance(expected, dict):
        assert expected.keys() == found.keys()
        for key in expected:
            assert_equal(expected[key], found[key])
    elif isinstance(expected, list | tuple):
        for mine, theirs in zip(expected, found, strict=True):
            assert_equal(mine, theirs)
    else:
        assert expected == found
