"""What is asked of scores beside being right: weights of classes, units of numbers, a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lpgnn_cli.metrics import CLASSES, LABELS, task_of

# More are a mistake in the file, and would fill the memory.
MAX_CLASSES = 1 << 16


@dataclass(frozen=True, eq=False)
class Units:
    """Numbers are learnt in units of their spread over the training part: (t - mean) / std."""

    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, targets_TC: Tensor) -> Units:
        mean = targets_TC.mean(0)
        std = (targets_TC - mean).square().mean(0).sqrt()
        return cls(mean, torch.where(std > 1e-12 * (1 + mean.abs()), std, 1.0))

    def apply(self, targets: Tensor) -> Tensor:
        return (targets - self.mean.to(targets)) / self.std.to(targets)

    def undo(self, scores: Tensor) -> Tensor:
        return scores * self.std.to(scores) + self.mean.to(scores)

    def to_dict(self) -> dict[str, list[float]]:
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Units:
        return cls(torch.tensor(raw["mean"]), torch.tensor(raw["std"]))


@dataclass(frozen=True, eq=False)
class Judging:
    """How the scores of a part are judged."""

    # The metric that it is all about; empty: none that would not be computed anyway.
    metric: str = ""
    # In the loss: of each class, or of the presence of each label; None: all alike.
    weights: Tensor | None = None
    # Those of targets that are numbers.
    units: Units | None = None

    def in_units(self, values: Tensor) -> Tensor:
        """Scores or targets as the data has them."""
        return values if self.units is None else self.units.undo(values)


def as_targets(values: npt.NDArray[Any], name: str) -> tuple[Tensor, int]:
    """Targets from an array, and how many classes or columns they have; ValueError if bad.

    A vector of whole numbers, or of false and true, are classes from 0, a matrix of 0 and 1 several
    labels per item, and all else are numbers.
    """
    if values.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be numbers, not {values.dtype}")
    if values.ndim not in (1, 2) or not values.size:
        raise ValueError(f"{name} must be one value, or one row of them, per item")
    if values.ndim == 1 and values.dtype.kind in "iub":
        if int(values.min()) < 0:
            raise ValueError(f"{name} has a negative class: they are numbered from 0")
        if int(values.max()) >= MAX_CLASSES:
            raise ValueError(f"{name} has the class {values.max()}: there are too many")
        return torch.from_numpy(values.astype(np.int64)), int(values.max()) + 1
    matrix = values.reshape(len(values), -1)
    if values.ndim == 2 and bool(np.isin(matrix, (0, 1)).all()):
        return torch.from_numpy(matrix.astype(np.int64)), matrix.shape[1]
    if values.dtype.kind != "f":
        column = f", and classes a vector: {name}.reshape(-1)" if matrix.shape[1] == 1 else ""
        raise ValueError(
            f"{name} must be classes, rows of 0 and 1, or numbers with a point{column}"
        )
    if not bool(np.isfinite(matrix).all()):
        raise ValueError(f"{name} has a value that is no finite number")
    return torch.from_numpy(matrix.astype(np.float32)), matrix.shape[1]


def balanced_weights(targets: Tensor, num_classes: int) -> Tensor | None:
    """Classes that are rare in training count more, so that all of them count as much together."""
    task = task_of(targets)
    if task == CLASSES:
        counts = torch.bincount(targets, minlength=num_classes).clamp(min=1)
        return targets.numel() / (num_classes * counts.float())
    if task == LABELS:
        present = targets.sum(0).clamp(min=1).float()
        return ((len(targets) - present) / present).clamp(min=1e-3)
    return None
