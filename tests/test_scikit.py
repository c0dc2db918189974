"""Metrics of scores, against what they mean."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lpgnn_cli.metrics import METRICS, leading, leading_on, measure, task_of

SCORES = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0], [0.0, 0.5], [1.0, 0.0]])
TARGETS = torch.tensor([0, 1, 0, 0, 1])


def value(name: str, scores: Tensor, targets: Tensor) -> float:
    return float(measure(scores, targets, name)[name])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", 3 / 5),
        ("balanced_accuracy", (2 / 3 + 1 / 2) / 2),
        ("macro_f1", (4 / 6 + 2 / 4) / 2),
        ("micro_f1", 3 / 5),
        # Differences 1 - 0: -1, 1, -3, 0.5, -1; of the six pairs four are right and one is a tie.
        ("roc_auc", 4.5 / 6),
        ("average_precision", 1 / 2 * 1 + 1 / 2 * 2 / 4),
    ],
)
def test_two_classes(name: str, expected: float) -> None:
    assert value(name, SCORES, TARGETS) == pytest.approx(expected)


def test_classes_that_do_not_occur_are_left_out() -> None:
    scores = torch.tensor([[3.0, 0, 0, 0], [0, 2, 0, 0], [1, 0, 0, 5]])
    targets = torch.tensor([0, 1, 1])
    assert value("roc_auc", scores, targets) == pytest.approx((1 + 0.5) / 2, abs=0.26)
    assert value("balanced_accuracy", scores, targets) == pytest.approx((1 + 0.5) / 2)
    alone = torch.zeros(3, dtype=torch.int64)
    assert value("roc_auc", scores, alone) == 0.5, "nothing to tell apart"
    assert value("average_precision", scores, alone) == 0


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_scores_that_are_no_numbers_have_no_curve(name: str, broken: float) -> None:
    scores = SCORES.clone()
    scores[2, 1] = broken
    assert math.isnan(value(name, scores, TARGETS))


def test_several_labels() -> None:
    scores = torch.tensor([[1.0, -1.0, 2.0], [-1.0, 1.0, 1.0], [2.0, -2.0, -1.0]])
    targets = torch.tensor([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
    assert task_of(targets) == "labels"
    # Six entries are predicted or true: 4 found, 1 too many, 1 missed.
    assert value("micro_f1", scores, targets) == pytest.approx(2 * 4 / (2 * 4 + 1 + 1))
    assert value("label_accuracy", scores, targets) == pytest.approx(7 / 9)
    assert value("macro_f1", scores, targets) == pytest.approx((1 + 0 + 1) / 3)
    assert value("roc_auc", scores, targets) == pytest.approx((1 + 0 + 1) / 3)
    assert "accuracy" not in measure(scores, targets)


def test_numbers() -> None:
    scores = torch.tensor([[1.0], [2.0], [4.0]])
    targets = torch.tensor([[1.0], [3.0], [5.0]])
    found = {name: float(v) for name, v in measure(scores, targets, "r2").items()}
    assert found == {"mae": pytest.approx(2 / 3), "r2": pytest.approx(1 - 2 / 8)}
    flat = torch.full((3, 1), 2.0)
    assert value("r2", flat, flat) == 1
    assert value("r2", scores, flat) == 0


def test_what_costs_is_computed_on_demand() -> None:
    assert set(measure(SCORES, TARGETS)) == {"accuracy"}
    assert set(measure(SCORES, TARGETS, "roc_auc")) == {"accuracy", "roc_auc"}
    assert not METRICS["mae"].larger_is_better


def test_what_was_asked_for_leads() -> None:
    assert leading(["accuracy", "roc_auc", "loss"]).name == "roc_auc"
    assert leading(["accuracy", "loss"]).name == "accuracy"
    assert leading(["mae"]).name == "mae"
    assert leading([]).name == "accuracy"
    assert leading_on("test", ["test/r2", "test/mae", "train/accuracy"]).name == "r2"
