"""What is measured of a network on some graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from lpgnn_cli import metrics
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.targets import Judging
from lpgnn_cli.metrics import LOSS, VIOLATION_MAX, VIOLATION_MEAN
from lpgnn_cli.model.loss import target_loss
from lpgnn_cli.propagation import Outcome, Propagation

# Rows of a residual that are looked at together.
AT_ONCE = 1 << 16


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
        found = measure(scored, self.part.targets, judging)
        return to_floats(found | violation(self.outcome.residuals))

    def metrics(self, prefix: str) -> dict[str, float]:
        """The same, named as they are logged of a part."""
        return {f"{prefix}/{name}": value for name, value in self.by_name().items()}


def measure(scores: Tensor, targets: Tensor, judging: Judging) -> dict[str, Tensor]:
    """All that is logged of scores, one row per target."""
    answers, truth = judging.in_units(scores), judging.in_units(targets)
    return {
        **metrics.measure(answers, truth, judging.metric),
        LOSS.name: target_loss(scores, targets, "mean", judging.weights),
    }


@torch.no_grad()
def violation(residuals: Sequence[Tensor]) -> dict[str, Tensor]:
    """Mean and maximum of |x - f_a(x)|, over all layers and for each."""
    running = RunningViolation()
    running.add(residuals)
    return running.values()


class RunningViolation:
    """The same of residuals that come piece by piece and are not kept."""

    def __init__(self) -> None:
        # Rows, means by layer, and the largest by layer.
        self.pieces: list[tuple[int, list[Tensor], list[Tensor]]] = []

    @torch.no_grad()
    def add(self, residuals: Sequence[Tensor]) -> None:
        if not residuals:
            return
        for rows in zip(*(r.split(AT_ONCE) for r in residuals), strict=True):
            sizes = [r.abs() for r in rows]
            means, largest = [r.mean() for r in sizes], [r.amax() for r in sizes]
            self.pieces.append((len(rows[0]), means, largest))

    def values(self) -> dict[str, Tensor]:
        if not self.pieces:
            return {}
        counts, all_means, all_largest = zip(*self.pieces, strict=True)
        means = all_means[0]
        if len(counts) > 1:
            table = torch.stack([mean for piece in all_means for mean in piece])
            weights = table.new_tensor(counts) / sum(counts)
            means = (weights[:, None] * table.view(len(counts), -1)).sum(dim=0).unbind()
        values = {
            VIOLATION_MEAN.name: metrics.of_all(means, torch.mean),
            VIOLATION_MAX.name: metrics.of_all(list(chain(*all_largest)), torch.max),
        }
        return values | {VIOLATION_MEAN.of_layer(k): mean for k, mean in enumerate(means)}


def to_floats(values: dict[str, Tensor]) -> dict[str, float]:
    """All values in one transfer from the device."""
    if not values:
        return {}
    # What is single precision becomes double where something is.
    numbers = torch.stack([value.detach() for value in values.values()]).tolist()
    return dict(zip(values, numbers, strict=True))
