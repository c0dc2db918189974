"""The loss of each kind of target."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from lpgnn_cli.model.loss import target_loss

SCORES = torch.tensor([[1.0, -2.0], [0.5, 0.0], [0.0, 3.0]])


def test_classes_with_weights() -> None:
    targets, weights = torch.tensor([0, 1, 1]), torch.tensor([1.0, 3.0])
    each = functional.cross_entropy(SCORES, targets, reduction="none")
    assert torch.allclose(target_loss(SCORES, targets, "sum"), each.sum())
    weighted = (each * torch.tensor([1.0, 3.0, 3.0])).sum()
    assert torch.allclose(target_loss(SCORES, targets, "sum", weights), weighted)
    assert torch.allclose(target_loss(SCORES, targets, "mean", weights), weighted / 7)


def test_several_labels_are_each_a_question() -> None:
    targets = torch.tensor([[1, 0], [0, 1], [1, 1]])
    signs = 2 * targets - 1
    each = -functional.logsigmoid(signs * SCORES)
    assert torch.allclose(target_loss(SCORES, targets, "mean"), each.mean())
    assert torch.allclose(target_loss(SCORES, targets, "sum"), each.mean(1).sum())
    heavier = target_loss(SCORES, targets, "mean", torch.tensor([2.0, 2.0]))
    assert heavier > target_loss(SCORES, targets, "mean")


def test_numbers() -> None:
    targets = torch.tensor([[1.0, 0.0], [0.5, 2.0], [0.0, 3.0]])
    assert float(target_loss(SCORES, targets, "mean")) == pytest.approx((4 + 4) / 6)
    assert float(target_loss(SCORES, targets, "sum")) == pytest.approx((4 + 4) / 2)
