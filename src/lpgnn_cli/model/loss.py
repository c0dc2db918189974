"""The supervised loss."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from lpgnn_cli.data.part import Part
from lpgnn_cli.metrics import CLASSES, LABELS, task_of


def supervised_loss(part: Part, scores: Tensor, reduction: str) -> Tensor:
    """Of the targets of a part that count, given the scores of its whole batch; of a piece, its
    share of the loss of the whole."""
    scored, targets, weights = part.select(scores), part.targets, part.judging.weights
    if part.out_of is None:
        return target_loss(scored, targets, reduction, weights)
    total = target_loss(scored, targets, "sum", weights)
    return total / part.out_of if reduction == "mean" else total


def target_loss(
    scores: Tensor, targets: Tensor, reduction: str, weights: Tensor | None = None
) -> Tensor:
    """Cross-entropy of classes; of several labels or numbers, their mean loss by item."""
    task = task_of(targets)
    if task == CLASSES:
        return functional.cross_entropy(scores, targets, weight=weights, reduction=reduction)
    if task == LABELS:
        entries = functional.binary_cross_entropy_with_logits(
            scores, targets.to(scores), pos_weight=weights, reduction="none"
        )
    else:
        entries = functional.mse_loss(scores, targets, reduction="none")
    items = entries.mean(dim=1)
    return items.mean() if reduction == "mean" else items.sum()
