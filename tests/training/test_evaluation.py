"""Figures by hand: accuracy, loss, violation, and the table of predictions."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.propagation import Outcome
from lpgnn_cli.propagation.solvers import graph_violation
from lpgnn_cli.training.closing import close_unit
from lpgnn_cli.training.evaluation import Evaluation, to_floats, violation
from lpgnn_cli.training.predictions import write_predictions

from .conftest import MakeBatch, MakeConfig, MakeLearner

RESIDUALS = [
    torch.tensor([[0.1, -0.3], [0.0, 0.2], [-0.4, 0.0], [0.6, 0.0], [0.0, 0.0]]),
    torch.tensor([[1.0], [0.0], [-2.0], [0.5], [0.0]]),
]


def evaluated(part: Part, scores: Tensor, residuals: list[Tensor]) -> Evaluation:
    return Evaluation(part, Outcome(states=[], transits=[], scores=scores, residuals=residuals))


@pytest.fixture
def graphs(make_batch: MakeBatch) -> GraphBatch:
    """Two graphs of three and two nodes with targets 0 and 1."""
    return make_batch((3, 2))


def test_metrics_of_graphs(graphs: GraphBatch) -> None:
    scores = torch.tensor([[2.0, 0.0], [1.0, 1.0 - 1e-3]])
    metrics = evaluated(Part(graphs), scores, RESIDUALS).metrics("test")
    losses = [math.log1p(math.exp(-2.0)), math.log(1 + math.exp(1e-3))]
    assert metrics["test/accuracy"] == 0.5
    assert metrics["test/loss"] == pytest.approx(sum(losses) / 2, rel=1e-6)
    assert metrics["test/layer0/violation_mean"] == pytest.approx(1.6 / 10)
    assert metrics["test/layer1/violation_mean"] == pytest.approx(3.5 / 5)
    assert metrics["test/violation_mean"] == pytest.approx((1.6 / 10 + 3.5 / 5) / 2)
    assert metrics["test/violation_max"] == 2.0
    assert all(type(value) is float for value in metrics.values())
    assert set(evaluated(Part(graphs), scores, []).metrics("val")) == {"val/accuracy", "val/loss"}


def test_only_scored_nodes_count(make_batch: MakeBatch) -> None:
    nodes = make_batch((3, 2), level="node")  # targets 0 1 0 1 0
    part = Part(nodes, scored=torch.tensor([1, 2, 4]))
    scores = torch.tensor([[0.0, 9.0], [0.0, 1.0], [0.0, 1.0], [9.0, 0.0], [3.0, 0.0]])
    metrics = evaluated(part, scores, []).metrics("test")
    losses = [math.log1p(math.exp(-1.0)), math.log1p(math.exp(1.0)), math.log1p(math.exp(-3.0))]
    assert metrics["test/accuracy"] == pytest.approx(2 / 3)
    assert metrics["test/loss"] == pytest.approx(sum(losses) / 3, rel=1e-6)
    assert float(supervised_loss(part, scores, "sum")) == pytest.approx(sum(losses), rel=1e-6)


def test_violation_of_each_graph(graphs: GraphBatch) -> None:
    """The mean over its nodes and all their dimensions in all layers."""
    expected = [(0.1 + 0.3 + 1.0 + 0.2 + 0.4 + 2.0) / 9, (0.6 + 0.5) / 6]
    assert graph_violation(RESIDUALS, graphs).tolist() == pytest.approx(expected)


def test_no_residuals_no_violation() -> None:
    assert violation([]) == {}
    assert to_floats({}) == {}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_predictions_of_graphs(graphs: GraphBatch, tmp_path: Path) -> None:
    scores = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
    write_predictions(tmp_path / "p.csv", evaluated(Part(graphs), scores, RESIDUALS))
    first, second = read(tmp_path / "p.csv")
    names = ["item", "target", "predicted", "probability", "violation"]
    assert list(first) == [*names, "probability_0", "probability_1"]
    assert float(second["probability_1"]) == pytest.approx(1 / (1 + math.exp(1)))
    assert [first[k] for k in ("item", "target", "predicted")] == ["0", "0", "0"]
    assert [second[k] for k in ("item", "target", "predicted")] == ["1", "1", "0"]
    assert float(first["probability"]) == pytest.approx(1 / (1 + math.exp(-2)))
    assert float(second["probability"]) == pytest.approx(1 / (1 + math.exp(-1)))
    assert float(first["violation"]) == pytest.approx(4.0 / 9)
    assert float(second["violation"]) == pytest.approx(1.1 / 6)


def test_predictions_of_scored_nodes(make_batch: MakeBatch, tmp_path: Path) -> None:
    nodes = make_batch((3, 2), level="node")
    part = Part(nodes, scored=torch.tensor([4, 1]))
    scores = torch.tensor([[0.0, 9.0], [0.0, 1.0], [0.0, 1.0], [9.0, 0.0], [3.0, 0.0]])
    write_predictions(tmp_path / "p.csv", evaluated(part, scores, RESIDUALS))
    rows = read(tmp_path / "p.csv")
    assert [r["item"] for r in rows] == ["4", "1"]
    assert [r["target"] for r in rows] == ["0", "1"]
    assert [r["predicted"] for r in rows] == ["0", "1"]
    assert [float(r["violation"]) for r in rows] == pytest.approx([0.0, 0.2 / 3])


def test_predictions_without_constraints(graphs: GraphBatch, tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.csv", evaluated(Part(graphs), torch.zeros(2, 2), []))
    assert [r["violation"] for r in read(tmp_path / "p.csv")] == ["0.0", "0.0"]


def test_closing_compares_persistent_states_with_those_found_from_zero(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner, tmp_path: Path
) -> None:
    train, test = make_batch(), make_batch((4, 6), seed=9)
    config = make_config("aggregator=avg", "inference=fixed_point", "inference.damping=1.0")
    learner = make_learner(config, train=train, test=test)
    for epoch in range(1, 21):
        learner.train_epoch(epoch, train)
        learner.follow("test")
    closing = close_unit(learner.propagation, learner.parts, config.inference, tmp_path)
    assert closing.persistent == learner.evaluate("test").by_name()
    outcome, _ = learner.propagation.infer(test, config.inference)
    assert closing.from_zero == Evaluation(Part(test), outcome).by_name()
    stats = closing.inference
    assert stats["converged"] == 1
    assert stats["from_zero_violation"] == closing.from_zero["violation_mean"]
    assert stats["from_zero_violation"] < config.inference.tolerance
    assert 1 <= stats["steps"] <= config.inference.steps
    assert 0 < stats["gain"] < 1
    with np.load(tmp_path / "residuals.npz") as arrays:
        there = learner.evaluate("train").outcome.residuals[0].abs().flatten().float()
        np.testing.assert_array_equal(arrays["train"], there)
        assert arrays["test"].size == test.num_nodes * 16
    probabilities = [float(row["probability"]) for row in read(tmp_path / "predictions.csv")]
    assert probabilities == pytest.approx(outcome.scores.softmax(1).amax(1).tolist())

    layered = make_learner(make_config("propagation=layers"), train=train, test=test)
    forward = close_unit(layered.propagation, layered.parts, config.inference, tmp_path / "..")
    assert forward.from_zero == layered.evaluate("test").by_name()
    assert (forward.persistent, forward.inference) == ({}, {})


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["propagation.states=frozen"],
        ["propagation=layers", "layers=2"],
        ["propagation.updates=ages", "propagation.ages=2"],
    ],
)
def test_statistics_are_those_of_the_weights_that_are_evaluated(
    words: list[str], make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    """After a large step: what training would make of its graphs, evaluation makes of them too."""
    config = make_config("readout.norm=batch", "propagation.norm=batch", "optim=sgd", *words)
    config.lr.theta = 3.0
    learner = make_learner(config, train=make_batch((9, 8, 7)))
    propagation, batch = learner.propagation, learner.parts["train"].batch
    learner.train_epoch(1)
    propagation.take_statistics(batch)
    evaluated = learner.evaluate("train").outcome.scores
    propagation.network.train()
    with torch.no_grad():
        trained = propagation.look("train", batch).scores
    # The variance that is kept is the unbiased one, hence the tolerance.
    size = trained.abs().max()
    torch.testing.assert_close(evaluated / size, trained / size, rtol=0, atol=0.05)
