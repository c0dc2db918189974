"""States that are put back to zero, and signs of eigenvectors that are drawn anew with them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.propagation.ages import Ages
from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.training.fit import UnitFit

from .conftest import MakeBatch, MakeConfig, MakeLearner, MakeTasks


def at_zero(propagation: Lagrangian, batch: GraphBatch) -> Tensor:
    """(G,) the graphs all of whose states are zero."""
    (x,) = propagation.variables.states.values
    moved = torch.zeros(batch.num_graphs, dtype=torch.float64)
    return moved.index_add(0, batch.graph_of_node, x.detach().abs().sum(dim=1).double()) == 0


@pytest.mark.parametrize("updates", ["gradient", "one_shot"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_share_of_the_graphs_begins_anew_and_the_others_stay(
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
    updates: str,
    share: float,
) -> None:
    words = f"propagation.updates={updates}", f"propagation.restart={share}"
    batch = make_batch(sizes=(4,) * 300)
    learner = make_learner(make_config(*words, "precision=float64"), train=batch)
    propagation = learner.propagation
    assert isinstance(propagation, Lagrangian)
    learner.train_epoch(1)
    assert not at_zero(propagation, batch).any()
    (x,) = propagation.variables.states.values
    before = x.detach().clone()

    anew = propagation.renew(batch)
    assert torch.equal(at_zero(propagation, batch), anew)
    stays = ~anew[batch.graph_of_node]
    assert torch.equal(x.detach()[stays], before[stays])
    # 300 draws: five standard deviations are 0.13.
    assert float(anew.double().mean()) == pytest.approx(share, abs=0.14 if 0 < share < 1 else 0)


def test_graphs_of_age_zero_begin_anew(
    make_config: MakeConfig, make_batch: MakeBatch, make_learner: MakeLearner
) -> None:
    batch = make_batch(sizes=(4,) * 50)
    words = "propagation.updates=ages", "propagation.ages=3", "precision=float64"
    learner = make_learner(make_config(*words), train=batch)
    propagation = learner.propagation
    assert isinstance(propagation, Ages)
    for epoch in range(1, 4):
        learner.train_epoch(epoch)
    assert torch.equal(propagation.renew(batch), propagation.age == 0)
    assert torch.equal(at_zero(propagation, batch), propagation.age == 0)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_signs_are_drawn_anew_exactly_with_the_states(
    make_config: MakeConfig, make_tasks: MakeTasks, share: float
) -> None:
    words = "dataset=mutag", "dataset.positional=2", "protocol.folds=2"
    config = make_config(*words, f"propagation.restart={share}")
    fit = UnitFit(make_tasks(config)[0])
    fit._epoch(1)
    assert fit.signs is not None
    assert isinstance(fit.propagation, Lagrangian)
    before, batch = fit.signs.clone(), fit.parts["train"].batch

    part = fit._renewed()
    anew = at_zero(fit.propagation, batch)
    other = (fit.signs != before).any(dim=1)
    assert bool(anew.any()) is (share > 0)
    assert bool(other.any()) is (share > 0)
    assert not other[~anew].any()
    # A graph whose signs stay has the input that its states belong to.
    same = ~other[batch.graph_of_node]
    signs = before[batch.graph_of_node]
    expected = torch.cat([batch.features[:, :-2], batch.features[:, -2:] * signs], dim=1)
    assert torch.equal(part.batch.features[same], expected[same])
