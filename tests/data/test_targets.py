"""Kinds of targets: classes, several labels, numbers; their weights and units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lpgnn_cli.data.targets import Units, as_targets, balanced_weights
from lpgnn_cli.metrics import task_of


@pytest.mark.parametrize(
    ("values", "task", "columns"),
    [
        (np.array([0, 2, 1]), "classes", 3),
        (np.array([True, False]), "classes", 2),
        (np.array([[0, 1], [1, 1]]), "labels", 2),
        (np.array([[0.0, 1.0], [1.0, 1.0]]), "labels", 2),
        (np.array([[True, False]]), "labels", 2),
        (np.array([0.5, 2.0]), "numbers", 1),
        (np.array([0.0, 1.0]), "numbers", 1),
        (np.array([[0.5, 2.0, 1.0]]), "numbers", 3),
    ],
)
def test_the_kind_follows_from_the_array(values: Any, task: str, columns: int) -> None:
    targets, count = as_targets(values, "y")
    assert (task_of(targets), count) == (task, columns)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.array([-1, 0]), "a negative class"),
        (np.array([0, 10**9]), "too many"),
        (np.array(["a"]), "must be numbers"),
        (np.array([[0, 3]]), "must be classes, rows of 0 and 1, or numbers with a point"),
        (np.array([0.5, np.inf]), "no finite number"),
        (np.array([[0], [2]]), r"classes a vector: y\.reshape\(-1\)"),
        (np.zeros((0,)), "per item"),
        (np.zeros((2, 2, 2)), "per item"),
    ],
)
def test_arrays_that_are_no_targets(values: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        as_targets(values, "y")


def test_weights_make_classes_count_alike() -> None:
    weights = balanced_weights(torch.tensor([0, 0, 0, 1]), 2)
    assert weights is not None
    assert weights.tolist() == pytest.approx([4 / 6, 2])
    presence = balanced_weights(torch.tensor([[1, 0], [0, 0], [0, 1], [0, 1]]), 2)
    assert presence is not None
    assert presence.tolist() == [3, 1]
    assert balanced_weights(torch.tensor([[0.5]]), 1) is None


def test_units_are_undone() -> None:
    numbers = torch.tensor([[100.0, 5.0], [300.0, 5.0]])
    units = Units.fit(numbers)
    inside = units.apply(numbers)
    assert inside.tolist() == [[-1, 0], [1, 0]]
    assert torch.equal(Units.from_dict(units.to_dict()).undo(inside), numbers)
