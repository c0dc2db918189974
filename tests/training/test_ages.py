"""Ages: constraints in time, whose multipliers are the adjoints of backpropagation through time."""

from __future__ import annotations

import copy

import pytest
import torch

from lpgnn_cli.data.part import Part
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.propagation import Propagation
from lpgnn_cli.propagation.ages import Ages

from .conftest import MakeBatch, MakeConfig, MakeLearner

AGES = 5
RULE = (
    "propagation.updates=ages",
    f"propagation.ages={AGES}",
    "propagation.clip=null",
    "state=[3]",
)
AT_REST = ("optim=sgd", "lr.theta=1e-30", "precision=float64", "propagation.loss_reduction=sum")


def through_time(propagation: Propagation, part: Part) -> tuple[list[torch.Tensor], list[float]]:
    """Gradients of theta for the loss at every age, by plain backpropagation, and the losses."""
    network = copy.deepcopy(propagation.network)
    network.train()
    x = network.zero_states(part.batch)
    losses = []
    for _ in range(AGES):
        below: list[torch.Tensor] = []
        for layer, state in enumerate(x):
            below.append(network.transition(layer, state, x, part.batch))
        x = below
        losses.append(supervised_loss(part, network.read(x, x, part.batch), "sum"))
    gradients = torch.autograd.grad(torch.stack(losses).sum(), list(network.parameters()))
    return list(gradients), [float(loss.detach()) for loss in losses]


@pytest.mark.parametrize("level", ["graph", "node"])
@pytest.mark.parametrize("words", [[], ["layers=2", "state=[3,2]"], ["aggregator=gcn"]])
def test_at_rest_the_gradients_of_a_cycle_are_those_of_backpropagation_through_time(
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
    level: str,
    words: list[str],
) -> None:
    learner = make_learner(make_config(*RULE, *AT_REST, *words), train=make_batch(level=level))
    propagation, part = learner.propagation, learner.parts["train"]
    assert isinstance(propagation, Ages)
    # Multipliers reach one age further back with every cycle.
    for epoch in range(1, 1 + AGES * (AGES + 1)):
        learner.train_epoch(epoch)
    total = [torch.zeros_like(p) for p in propagation.network.parameters()]
    for epoch in range(AGES):
        learner.train_epoch(epoch + 1)
        for sums, p in zip(total, propagation.network.parameters(), strict=True):
            sums += 0 if p.grad is None else p.grad
    wanted, _ = through_time(propagation, part)
    for mine, theirs in zip(total, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-10)


def test_one_age_is_the_frozen_control(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    words = ("state=[3]", "propagation.loss_reduction=mean", "precision=float64")
    aged = make_learner(
        make_config(*words, "propagation.updates=ages", "propagation.ages=1"), train=make_batch()
    )
    frozen = make_learner(make_config(*words, "propagation.states=frozen"), train=make_batch())
    for epoch in range(1, 6):
        mine, theirs = aged.train_epoch(epoch), frozen.train_epoch(epoch)
        assert mine["train/loss"] == theirs["train/loss"]
    for a, b in zip(aged.network.parameters(), frozen.network.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_test_phase_takes_the_steps_of_training(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    learner = make_learner(make_config(*RULE, *AT_REST), train=make_batch(), test=make_batch())
    _, losses = through_time(learner.propagation, learner.parts["train"])
    found, stats = learner.propagation.infer(
        learner.parts["test"].batch, learner.propagation.config.inference
    )
    assert stats is not None
    assert stats.steps == AGES
    last = supervised_loss(learner.parts["test"], found.scores, "sum")
    assert float(last.detach()) == pytest.approx(losses[-1], rel=1e-12)


def test_graphs_in_batches_keep_their_own_ages(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    learner = make_learner(make_config(*RULE, *AT_REST), train=make_batch((5, 6, 4, 3)))
    propagation, part = learner.propagation, learner.parts["train"]
    assert isinstance(propagation, Ages)
    other = make_learner(make_config(*RULE, *AT_REST), train=part)
    assert isinstance(other.propagation, Ages)
    for epoch in range(1, 2 * AGES):
        for graphs in (torch.tensor([2, 0]), torch.tensor([1, 3])):
            propagation.train_step(epoch, part.subset(graphs), graphs)
        other.train_epoch(epoch)
        assert torch.equal(propagation.age, other.propagation.age)
        for mine, theirs in zip(
            propagation.variables.states.values,
            other.propagation.variables.states.values,
            strict=True,
        ):
            torch.testing.assert_close(mine, theirs)


def test_the_violation_is_how_far_the_diffusion_still_goes(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    learner = make_learner(make_config(*RULE, *AT_REST), train=make_batch())
    propagation, batch = learner.propagation, learner.parts["train"].batch
    x = propagation.network.zero_states(batch)
    first = propagation.transit(x, batch)[0].detach().abs().mean()
    metrics = learner.train_epoch(1)
    torch.testing.assert_close(metrics["train/violation_mean"], first, check_dtype=False)


def test_without_adjoint_multipliers_stay_zero(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    learner = make_learner(make_config(*RULE, "propagation.adjoint=false"), train=make_batch())
    for epoch in range(1, 2 * AGES):
        learner.train_epoch(epoch)
    assert isinstance(learner.propagation, Ages)
    assert all(not m.any() for m in learner.propagation.variables.multipliers.values)


def test_multipliers_are_clipped_in_units_of_a_target(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    words = [word for word in RULE if "clip" not in word]
    config = make_config(*words, "propagation.clip=0.01", "propagation.loss_reduction=mean")
    learner = make_learner(config, train=make_batch())
    for epoch in range(1, 3 * AGES):
        learner.train_epoch(epoch)
    assert isinstance(learner.propagation, Ages)
    (multipliers,) = learner.propagation.variables.multipliers.values
    assert float(multipliers.detach().norm(dim=2).max()) == pytest.approx(0.01 / 3, rel=1e-5)
