"""What is measured, and how each metric is named, compared and shown.

A new metric is one entry of METRICS. Where it is computed from class scores (`of_scores`),
`measure` gives it for every part in every epoch, and it reaches metrics.csv, MLflow, summary.json,
the curves, the closing table and `sweep.metric=` without being named anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from itertools import count, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who only reads what was measured needs no torch
    import torch
    from torch import Tensor

TRAIN, VAL, TEST = PARTS = ("train", "val", "test")
# What is learnt of a trained unit once: it has no epochs.
INFERENCE = "inference"
# Columns of metrics.csv that say when a row was computed.
EPOCH, TIME = WHEN = ("epoch", "time")


@dataclass(frozen=True)
class Metric:
    """One metric; `name` is what is stored, `title` what people read."""

    name: str
    title: str
    larger_is_better: bool = False
    in_per_cent: bool = False
    parts: tuple[str, ...] = PARTS
    of_scores: Callable[[Tensor, Tensor], Tensor] | None = None

    def on(self, part: str, layer: int | None = None) -> str:
        """As it is logged: `test/accuracy`, `train/layer0/violation_mean`."""
        return f"{part}/{self.name}" if layer is None else f"{part}/{self.of_layer(layer)}"

    def of_layer(self, layer: int) -> str:
        return f"layer{layer}/{self.name}"

    def by_layer(self, part: str, known: Container[str]) -> list[str]:
        """Its names for each layer, of those that are known."""
        return list(takewhile(lambda name: name in known, (self.on(part, k) for k in count())))


def accuracy(scores: Tensor, targets: Tensor) -> Tensor:
    hits = (scores.argmax(dim=1) == targets).sum()
    return hits / targets.new_tensor(targets.numel(), dtype=precision(targets))


def precision(like: Tensor) -> torch.dtype:
    """Double precision for metrics, where the device has it."""
    import torch

    return torch.float32 if like.device.type == "mps" else torch.float64


ACCURACY = Metric(
    "accuracy", "accuracy", larger_is_better=True, in_per_cent=True, of_scores=accuracy
)
LOSS = Metric("loss", "loss")
LAGRANGIAN = Metric("lagrangian", "Lagrangian", parts=(TRAIN,))
VIOLATION_MEAN = Metric("violation_mean", "mean violation")
VIOLATION_MAX = Metric("violation_max", "largest violation")
MULTIPLIER_NORM = Metric("multiplier_norm", "multiplier norm", parts=(TRAIN,))

FROM_ZERO_VIOLATION = Metric("from_zero_violation", "violation from zero", parts=(INFERENCE,))
CONVERGED = Metric(
    "converged", "graphs settled", larger_is_better=True, in_per_cent=True, parts=(INFERENCE,)
)
STEPS = Metric("steps", "steps", parts=(INFERENCE,))
GAIN = Metric("gain", "gain", parts=(INFERENCE,))
# 1 where persistent states and those found from zero agree by construction.
PATH_FREE = Metric("path_free", "path-free", parts=(INFERENCE,))

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        ACCURACY,
        LOSS,
        LAGRANGIAN,
        VIOLATION_MEAN,
        VIOLATION_MAX,
        MULTIPLIER_NORM,
        FROM_ZERO_VIOLATION,
        CONVERGED,
        STEPS,
        GAIN,
        PATH_FREE,
        # Of a whole run rather than of a part.
        Metric("seconds", "seconds of computing", parts=()),
    )
}


def measure(scores: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """Every metric that class scores have, by name."""
    return {m.name: m.of_scores(scores, targets) for m in METRICS.values() if m.of_scores}


def score_metrics() -> list[Metric]:
    """The metrics that class scores have: those that a run reports as its result."""
    return [metric for metric in METRICS.values() if metric.of_scores]


def mean_of(name: str) -> str:
    """The stored name of a mean over units."""
    return f"{name}_mean"


def std_of(name: str) -> str:
    """The stored name of the population standard deviation over units."""
    return f"{name}_std"


def find_metric(name: str) -> Metric | None:
    """The metric behind a stored name such as `honest/accuracy_mean` or `inference/gain_max`."""
    last = name.rpartition("/")[2]
    for suffix in ("", "_mean", "_std", "_max"):
        if found := METRICS.get(last.removesuffix(suffix)):
            return found
    return None


def in_per_cent(name: str) -> bool:
    """Whether the values of a stored name are fractions, which people read as per cent."""
    metric = find_metric(name)
    return metric is not None and metric.in_per_cent


def larger_is_better(name: str) -> bool:
    """Whether the best value of a stored name is the largest; so of names that nobody knows."""
    metric = find_metric(name)
    return metric is None or (metric.larger_is_better and not name.endswith("_std"))
