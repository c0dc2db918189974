"""The names of what is measured are a contract: run folders and MLflow stores have them."""

from __future__ import annotations

import pytest
import torch

from lpgnn_cli.metrics import (
    ACCURACY,
    MULTIPLIER_NORM,
    VIOLATION_MEAN,
    find_metric,
    in_per_cent,
    larger_is_better,
    measure,
)


def test_logged_names() -> None:
    assert ACCURACY.on("test") == "test/accuracy"
    assert VIOLATION_MEAN.on("train", layer=2) == "train/layer2/violation_mean"
    assert MULTIPLIER_NORM.parts == ("train",)


def test_layers_are_found_as_far_as_they_go() -> None:
    known = {
        "train/violation_mean",
        "train/layer0/violation_mean",
        "train/layer1/violation_mean",
        "train/layer3/violation_mean",
        "test/layer0/violation_mean",
    }
    assert VIOLATION_MEAN.by_layer("train", known) == [
        "train/layer0/violation_mean",
        "train/layer1/violation_mean",
    ]
    assert VIOLATION_MEAN.by_layer("val", known) == []


@pytest.mark.parametrize(
    ("stored", "metric", "as_per_cent", "larger"),
    [
        ("test/accuracy", "accuracy", True, True),
        ("cv/accuracy_mean", "accuracy", True, True),
        ("honest/accuracy_std", "accuracy", True, False),
        ("train/violation_mean", "violation_mean", False, False),
        ("train/layer0/violation_mean_mean", "violation_mean", False, False),
        ("test/violation_max", "violation_max", False, False),
        ("train/loss", "loss", False, False),
        ("persistent/accuracy_mean", "accuracy", True, True),
        ("inference/gain_max", "gain", False, False),
        ("inference/converged_mean", "converged", True, True),
        ("seconds", "seconds", False, False),
        ("cv/best_epoch", None, False, True),
        ("auto", None, False, True),
    ],
)
def test_stored_names_are_read_back(
    stored: str, metric: str | None, as_per_cent: bool, larger: bool
) -> None:
    found = find_metric(stored)
    assert (found.name if found else None) == metric
    assert in_per_cent(stored) == as_per_cent
    assert larger_is_better(stored) == larger


def test_accuracy_is_the_share_of_targets_that_are_found() -> None:
    scores = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    values = measure(scores, torch.tensor([0, 1, 1]))
    assert {name: value.item() for name, value in values.items()} == {"accuracy": 2 / 3}
    assert values["accuracy"].dtype == torch.float64
