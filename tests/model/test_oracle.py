"""The plain formulation of the method as oracle: same weights and states, same numbers."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from lpgnn_cli.config.compose import compose
from lpgnn_cli.data import load_dataset
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.propagation import build_propagation
from lpgnn_cli.training.epoch import train_epoch

STATE, HIDDEN, READOUT = 5, 6, 7


@pytest.fixture(scope="module")
def plain_module() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "plain.py"
    spec = importlib.util.spec_from_file_location("plain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def both(plain_module: ModuleType) -> tuple[Any, Any]:
    """lpgnn and the oracle on MUTAG, with the same weights, states and multipliers."""
    overrides = ["recipe=none", "dataset=mutag", "aggregator=sum", "g=squared", f"state=[{STATE}]"]
    overrides += [f"aggregator.hidden=[{HIDDEN}]", f"readout.hidden=[{READOUT}]"]
    config = compose("train", [*overrides, "propagation=lagrangian", "precision=float64"])
    batch = load_dataset(config.dataset, config.data.root, seed=0).batch.subset(torch.arange(40))
    batch = replace(
        batch,
        features=batch.features.double(),
        arc_in=batch.arc_in.double(),
        arc_out=batch.arc_out.double(),
    )
    torch.manual_seed(0)
    lpgnn: Any = build_propagation(
        config, DataShape.of(batch), {"train": batch}, like=batch.features
    )
    rates = plain_module.LearningRates(config.lr.theta, config.lr.state, config.lr.state)
    oracle = plain_module.PlainLagrangian(
        batch, state=STATE, hidden=HIDDEN, readout=READOUT, lr=rates
    )
    oracle.copy_weights(lpgnn.network.transitions[0], lpgnn.network.readout.mlp)
    (x,), (multiplier,) = lpgnn.variables.states.values, lpgnn.variables.multipliers.values
    with torch.no_grad():
        for mine, other in ((x, oracle.x), (multiplier, oracle.multiplier)):
            other.copy_(mine.copy_(torch.randn_like(mine)).view_as(other))
    return lpgnn, oracle


def test_same_lagrangian_and_gradients(both: tuple[Any, Any]) -> None:
    lpgnn, oracle = both
    lagrangian, _ = oracle.lagrangian()
    lagrangian.backward()
    figures = train_epoch(lpgnn, 1, Part(oracle.batch))
    torch.testing.assert_close(figures["train/lagrangian"], lagrangian.detach())

    # The optimisers moved lpgnn's variables, but the gradients they moved by are still there.
    network, variables = lpgnn.network, lpgnn.variables
    h = network.transitions[0].h
    x_u, l_u, arc_out, arc_in, x_v, l_v = h.first.weight.grad.split_with_sizes(h.columns, dim=1)
    pairs = [
        (variables.states.values[0].grad, oracle.x.grad),
        (variables.multipliers.values[0].grad, oracle.multiplier.grad),
        (torch.cat([x_u, x_v, l_u, arc_out, arc_in, l_v], dim=1), oracle.h[0].weight.grad),
        (h.first.bias.grad, oracle.h[0].bias.grad),
        (h.last.weight.grad, oracle.h[2].weight.grad),
        (h.last.bias.grad, oracle.h[2].bias.grad),
        *(
            (mine.grad, other.grad)
            for mine, other in zip(
                network.readout.mlp.parameters(), oracle.f_r.parameters(), strict=True
            )
        ),
    ]
    for mine, other in pairs:
        torch.testing.assert_close(mine.view_as(other), other, rtol=1e-9, atol=1e-10)


def test_same_trajectory(both: tuple[Any, Any]) -> None:
    lpgnn, oracle = both
    for epoch in range(1, 6):
        figures = train_epoch(lpgnn, epoch, Part(oracle.batch))
        accuracy = oracle.train_epoch()
        assert figures["train/accuracy"].item() == pytest.approx(accuracy)
    (x,) = lpgnn.variables.states.values
    torch.testing.assert_close(x.detach(), oracle.x.detach(), rtol=0, atol=1e-7)
