"""What is measured of a unit at its end: the gain, and answers beside those of training."""

from __future__ import annotations

import pytest
import torch

from lpgnn_cli.data.part import Part
from lpgnn_cli.training.closing import score_part

from .conftest import MakeBatch, MakeConfig, MakeLearner


@pytest.mark.parametrize(
    ("words", "measured"),
    [
        (["aggregator=gat", "propagation.gain=0.95", "propagation.updates=ages"], True),
        (["aggregator=sum", "propagation.gain=0.95", "propagation.updates=ages"], False),
        (["aggregator=gat", "propagation.updates=ages"], False),
        (["aggregator=gat", "propagation.gain=0.95", "propagation=fixed_point"], True),
        (["aggregator=sum", "propagation.gain=0.95", "propagation=fixed_point"], False),
        (["aggregator=sum", "propagation.gain=0.95", "propagation.updates=one_shot"], True),
        (["aggregator=sum", "propagation=layers"], False),
    ],
)
def test_a_bound_that_nothing_proves_is_measured_whatever_the_propagation(
    words: list[str],
    measured: bool,
    make_batch: MakeBatch,
    make_config: MakeConfig,
    make_learner: MakeLearner,
) -> None:
    """And where states persist, the gain is always measured."""
    config = make_config("dataset=mutag", "g=lin", *words)
    learner = make_learner(config, train=make_batch(), test=make_batch((4, 7), seed=1))
    learner.train_epoch(1)
    closing = score_part(
        learner.propagation, "test", learner.parts["test"], config.inference
    ).inference
    assert ({"gain", "gain_largest"} <= closing.keys()) is measured
    if measured:
        assert 0 < closing["gain"] <= closing["gain_largest"]


def test_the_largest_gain_is_that_of_one_graph(
    make_batch: MakeBatch, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    config = make_config("dataset=mutag", "aggregator=sum", "g=lin")
    learner = make_learner(config, train=make_batch(), test=make_batch((2, 12), seed=1))
    part = learner.parts["test"]
    closing = score_part(learner.propagation, "test", part, config.inference).inference
    with torch.enable_grad():
        gains = learner.propagation.gain(learner.evaluate("test").outcome, part.batch)
    assert closing["gain_largest"] == pytest.approx(float(gains.max()))
    assert closing["gain"] == pytest.approx(float(gains.mean()))
    assert closing["gain"] < closing["gain_largest"]


def test_equal_answers_are_counted_one_by_one(
    make_batch: MakeBatch, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    """Two networks with the same accuracy may be right about different nodes."""
    config = make_config("dataset=karate", "aggregator=sum", "g=lin", "state=[2]")
    config.readout.learnt = False
    batch = make_batch((6,), level="node")
    learner = make_learner(config, train=batch, test=make_batch((6,), level="node", seed=1))
    part: Part = learner.parts["test"]
    from_zero, _ = learner.propagation.infer(part.batch, config.inference)
    answers = from_zero.scores.argmax(dim=1)
    persistent = learner.lagrangian.look("test", part.batch).scores.argmax(dim=1)
    closing = score_part(learner.propagation, "test", part, config.inference).inference
    assert closing["equal_answers"] == float((answers == persistent).double().mean())
