"""The pass that takes statistics is kept for the step that would make it again."""

from __future__ import annotations

import pytest
import torch

from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.training.fit import UnitFit

from .conftest import Learner, MakeBatch, MakeConfig, MakeLearner, MakeTasks

NORMS = ("readout.norm=batch", "propagation.norm=batch", "layers=2", "state=[3,2]")


def learnt(learner: Learner) -> list[torch.Tensor]:
    held = learner.variables
    return [*held.states.values, *held.multipliers.values, *learner.network.parameters()]


@pytest.mark.parametrize(
    "words",
    [
        ["propagation.hand_up=transition", "propagation.supervise_states=false"],
        ["propagation.supervise_states=true"],
        ["propagation.updates=one_shot"],
        ["propagation.restart=0.5"],
        ["aggregator.dropout=0.3"],
    ],
)
def test_training_is_the_same_to_the_last_bit(
    words: list[str], make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    config = make_config(*NORMS, *words)
    learners = [make_learner(config, train=make_batch((5, 6, 4))) for _ in range(2)]
    for epoch in range(1, 5):
        for learner in learners:
            torch.manual_seed(epoch)
            batch = learner.parts["train"].batch
            learner.propagation.renew(batch)
            learner.train_epoch(epoch)
            learner.propagation.take_statistics(batch)
        vars(learners[1].propagation)["ahead"] = None
    for mine, other in zip(*map(learnt, learners), strict=True):
        assert torch.equal(mine, other)


def test_a_pass_at_other_weights_or_states_is_made_again(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    learner = make_learner(make_config(*NORMS), train=make_batch((5, 6)))
    propagation, batch = learner.propagation, learner.parts["train"].batch
    assert isinstance(propagation, Lagrangian)
    learner.train_epoch(1)
    for changed in learnt(learner)[0], learner.network.weights[0]:
        propagation.take_statistics(batch)
        assert propagation.ahead is not None
        kept = propagation.ahead.transits
        with torch.no_grad():
            changed.add_(1.0)
        x = learner.variables.states.values
        found = propagation.transit_to_train(x, batch)
        assert found is not kept
        assert not torch.equal(found[0], kept[0])


def test_an_epoch_makes_one_pass_forward(make_config: MakeConfig, make_tasks: MakeTasks) -> None:
    words = "readout.norm=batch", "epochs=3", "propagation.supervise_states=true"
    fit = UnitFit(make_tasks(make_config(*words))[0])
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += fit.propagation.network.training or torch.is_grad_enabled()

    fit.propagation.network.transitions[0].register_forward_hook(count)
    for epoch in (1, 2, 3):
        metrics = fit._epoch(epoch)
        assert metrics["train/transitions_per_epoch"] == pytest.approx(2)
    # Three steps, and the pass that waits for a fourth.
    assert passes == 4
