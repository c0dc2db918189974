"""The supervised loss."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from lpgnn_cli.data.part import Part


def supervised_loss(part: Part, scores: Tensor, reduction: str) -> Tensor:
    """Of the targets of a part that count, given the scores of its whole batch."""
    return target_loss(part.select(scores), part.targets, reduction)


def target_loss(scores: Tensor, targets: Tensor, reduction: str) -> Tensor:
    """Cross-entropy."""
    return functional.cross_entropy(scores, targets, reduction=reduction)
