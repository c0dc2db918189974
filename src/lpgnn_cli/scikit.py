"""Metrics that scikit-learn computes, on the CPU, of scores that are one row per item.

Targets are one class per item, or a row of 0 and 1 where an item may have several labels. What is
undefined because a class never occurs leaves that class out, so that a small part has a value too.
Scores that are no numbers have no curve: NaN, which training knows as divergence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

Curve = Callable[[Any, Any], float]


def balanced_accuracy(scores: Tensor, targets: Tensor) -> Tensor:
    """The mean over the classes of the share of their items that are found."""
    from sklearn.metrics import recall_score

    truth, found = _answers(scores, targets)
    value = recall_score(truth, found, labels=np.unique(truth), average="macro", zero_division=0)
    return _like(scores, value)


def macro_f1(scores: Tensor, targets: Tensor) -> Tensor:
    return _f1(scores, targets, "macro")


def micro_f1(scores: Tensor, targets: Tensor) -> Tensor:
    return _f1(scores, targets, "micro")


def roc_auc(scores: Tensor, targets: Tensor) -> Tensor:
    """Of the second class of two; the mean over the classes, or the labels, where there are more.

    0.5, as of guessing, where nothing is to be told apart.
    """
    from sklearn.metrics import roc_auc_score

    return _mean_over_columns(scores, targets, roc_auc_score, 0.5)


def average_precision(scores: Tensor, targets: Tensor) -> Tensor:
    """The area under precision over recall, of the same columns as `roc_auc`."""
    from sklearn.metrics import average_precision_score

    return _mean_over_columns(scores, targets, average_precision_score, 0.0)


def _f1(scores: Tensor, targets: Tensor, average: str) -> Tensor:
    from sklearn.metrics import f1_score

    truth, found = _answers(scores, targets)
    return _like(scores, f1_score(truth, found, average=average, zero_division=0))


def _mean_over_columns(scores: Tensor, targets: Tensor, curve: Curve, otherwise: float) -> Tensor:
    if not bool(scores.isfinite().all()):
        return _like(scores, float("nan"))
    values = [curve(truth, score) for truth, score in _columns(scores, targets)]
    return _like(scores, float(np.mean(values)) if values else otherwise)


def _columns(scores: Tensor, targets: Tensor) -> list[tuple[Any, Any]]:
    """What is true and how sure the network is, for each label or class that tells items apart."""
    scores, targets = scores.detach().double().cpu(), targets.cpu()
    if targets.ndim == 2:
        truths, sure = targets.bool().T, scores.T
    elif scores.shape[1] == 2:
        truths, sure = (targets == 1)[None], (scores[:, 1] - scores[:, 0])[None]
    else:
        classes = torch.arange(scores.shape[1])
        truths, sure = targets[None] == classes[:, None], scores.softmax(dim=1).T
    pairs = zip(truths.numpy(), sure.numpy(), strict=True)
    return [(truth, score) for truth, score in pairs if truth.any() and not truth.all()]


def _answers(scores: Tensor, targets: Tensor) -> tuple[Any, Any]:
    found = scores > 0 if targets.ndim == 2 else scores.argmax(dim=1)
    return targets.cpu().numpy(), found.long().cpu().numpy()


def _like(scores: Tensor, value: float) -> Tensor:
    # Metal has no double precision.
    dtype = torch.float32 if scores.device.type == "mps" else torch.float64
    return torch.tensor(float(value), dtype=dtype, device=scores.device)
