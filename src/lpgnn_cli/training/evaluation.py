"""What is measured of a network on some graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from lpgnn_cli.data.batch import GraphBatch


@dataclass(frozen=True)
class Part:
    """Graphs, and which of their targets count: all of them, or those of some nodes."""

    batch: GraphBatch
    scored: Tensor | None = None

    def scores(self, scores: Tensor) -> Tensor:
        return scores if self.scored is None else scores[self.scored]

    @property
    def targets(self) -> Tensor:
        targets = self.batch.targets
        return targets if self.scored is None else targets[self.scored]

    def loss(self, scores: Tensor, reduction: str) -> Tensor:
        """Cross-entropy of the scored targets."""
        return functional.cross_entropy(self.scores(scores), self.targets, reduction=reduction)


@dataclass(frozen=True)
class Evaluation:
    """Class scores of a part and the residuals behind them (none where there is no constraint)."""

    part: Part
    scores: Tensor
    residuals: list[Tensor]

    def metrics(self, prefix: str) -> dict[str, float]:
        """Accuracy, mean loss and violation, named as they are logged."""
        scored = self.part.scores(self.scores)
        values = {
            "accuracy": accuracy(scored, self.part.targets),
            "loss": self.part.loss(self.scores, "mean"),
            **violation(self.residuals),
        }
        return to_floats({f"{prefix}/{name}": value for name, value in values.items()})


def accuracy(scores: Tensor, targets: Tensor) -> Tensor:
    return (scores.argmax(dim=1) == targets).sum() / targets.new_tensor(
        targets.numel(), dtype=_real(targets)
    )


@torch.no_grad()
def violation(residuals: Sequence[Tensor]) -> dict[str, Tensor]:
    """Mean and maximum of |x - f_a(x)|, over all layers and for each."""
    if not residuals:
        return {}
    sizes = [r.abs() for r in residuals]
    means = torch.stack([r.mean() for r in sizes])
    figures = {
        "violation_mean": means.mean(),
        "violation_max": torch.stack([r.max() for r in sizes]).max(),
    }
    for layer, mean in enumerate(means):
        figures[f"layer{layer}/violation_mean"] = mean
    return figures


def to_floats(values: dict[str, Tensor]) -> dict[str, float]:
    """All figures in one transfer from the device."""
    if not values:
        return {}
    first = next(iter(values.values()))
    numbers = torch.stack([v.detach().to(_real(first)) for v in values.values()]).tolist()
    return dict(zip(values, numbers, strict=True))


def _real(like: Tensor) -> torch.dtype:
    """Double precision for figures, where the device has it."""
    return torch.float32 if like.device.type == "mps" else torch.float64
