"""What is measured of a network on some graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lpgnn_cli import metrics
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.targets import Judging
from lpgnn_cli.metrics import LOSS, VIOLATION_MAX, VIOLATION_MEAN
from lpgnn_cli.model.loss import target_loss
from lpgnn_cli.propagation import Outcome, Propagation


@dataclass(frozen=True)
class Evaluation:
    """A part, and what the network makes of it."""

    part: Part
    outcome: Outcome

    @classmethod
    def of(cls, propagation: Propagation, name: str, part: Part) -> Evaluation:
        """A named part as it stands."""
        return cls(part, propagation.evaluate(name, part.batch))

    def by_name(self) -> dict[str, float]:
        """Accuracy, mean loss and violation."""
        scored, judging = self.part.select(self.outcome.scores), self.part.judging
        return to_floats(measure(scored, self.part.targets, self.outcome.residuals, judging))

    def metrics(self, prefix: str) -> dict[str, float]:
        """The same, named as they are logged of a part."""
        return {f"{prefix}/{name}": value for name, value in self.by_name().items()}


def measure(
    scores: Tensor, targets: Tensor, residuals: Sequence[Tensor], judging: Judging
) -> dict[str, Tensor]:
    """All that is logged of scores, one row per target, and of the residuals behind them."""
    answers, truth = judging.in_units(scores), judging.in_units(targets)
    return {
        **metrics.measure(answers, truth, judging.metric),
        LOSS.name: target_loss(scores, targets, "mean", judging.weights),
        **violation(residuals),
    }


@torch.no_grad()
def violation(residuals: Sequence[Tensor]) -> dict[str, Tensor]:
    """Mean and maximum of |x - f_a(x)|, over all layers and for each."""
    if not residuals:
        return {}
    sizes = [r.abs() for r in residuals]
    means = torch.stack([r.mean() for r in sizes])
    values = {
        VIOLATION_MEAN.name: means.mean(),
        VIOLATION_MAX.name: torch.stack([r.max() for r in sizes]).max(),
    }
    return values | {VIOLATION_MEAN.of_layer(k): mean for k, mean in enumerate(means)}


def to_floats(values: dict[str, Tensor]) -> dict[str, float]:
    """All values in one transfer from the device."""
    if not values:
        return {}
    first = next(iter(values.values()))
    real = metrics.precision(first)
    numbers = torch.stack([v.detach().to(real) for v in values.values()]).tolist()
    return dict(zip(values, numbers, strict=True))
