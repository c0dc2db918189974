"""What is measured, and how each metric is named, compared and shown.

A new metric is one entry of METRICS. Where it is computed from scores (`of_scores`), `measure`
gives it for every part in every epoch, or only where `metric=` asks for it, and it reaches
metrics.csv, MLflow, summary.json, the curves, the closing table and `sweep.metric=` without being
named anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who only reads what was measured needs no torch
    import torch
    from torch import Tensor

TRAIN, VAL, TEST = PARTS = ("train", "val", "test")
# What there is to learn: one class per item, several labels per item, or numbers.
CLASSES, LABELS, NUMBERS = TASKS = ("classes", "labels", "numbers")
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
    # Which targets it is for, and whether it is computed only where it is asked for.
    tasks: tuple[str, ...] = (CLASSES,)
    on_demand: bool = False

    def on(self, part: str, layer: int | None = None) -> str:
        """As it is logged: `test/accuracy`, `train/layer0/violation_mean`."""
        return f"{part}/{self.name}" if layer is None else f"{part}/{self.of_layer(layer)}"

    def of_layer(self, layer: int) -> str:
        return f"layer{layer}/{self.name}"

    def by_layer(self, part: str, known: Container[str]) -> list[str]:
        """Its names for each layer, of those that are known."""
        return list(takewhile(lambda name: name in known, (self.on(part, k) for k in count())))


def accuracy(scores: Tensor, targets: Tensor) -> Tensor:
    return (scores.argmax(dim=1) == targets).to(precision(targets)).mean()


def label_accuracy(scores: Tensor, targets: Tensor) -> Tensor:
    """The share of all labels of all items that are right."""
    return ((scores > 0) == targets.bool()).to(precision(scores)).mean()


def mean_absolute_error(scores: Tensor, targets: Tensor) -> Tensor:
    return (scores - targets).to(precision(scores)).abs().mean()


def determination(scores: Tensor, targets: Tensor) -> Tensor:
    """1 minus the squared errors over those of the mean, averaged over the columns."""
    scores, targets = scores.to(precision(scores)), targets.to(precision(scores))
    errors = (scores - targets).square().sum(0)
    spread = (targets - targets.mean(0)).square().sum(0)
    # A column that never changes cannot be explained, only be hit or missed.
    share = (errors / spread.clamp(min=1e-300)).where(spread > 0, (errors > 0).to(errors))
    return 1 - share.mean()


def task_of(targets: Tensor) -> str:
    """What there is to learn, from the targets alone."""
    if targets.is_floating_point():
        return NUMBERS
    return CLASSES if targets.ndim == 1 else LABELS


def from_scikit(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """One of `lpgnn_cli.scikit`, which imports what names alone do not need."""

    def compute(scores: Tensor, targets: Tensor) -> Tensor:
        from lpgnn_cli import scikit

        value: Tensor = getattr(scikit, name)(scores, targets)
        return value

    return compute


def precision(like: Tensor) -> torch.dtype:
    """Double precision for metrics, where the device has it."""
    import torch

    return torch.float32 if like.device.type == "mps" else torch.float64


def of_all(values: Sequence[Tensor], join: Callable[[Tensor], Tensor]) -> Tensor:
    """One number out of several; a single one is its own mean, maximum and length."""
    import torch

    return values[0] if len(values) == 1 else join(torch.stack(list(values)))


ACCURACY = Metric(
    "accuracy", "accuracy", larger_is_better=True, in_per_cent=True, of_scores=accuracy
)
LABEL_ACCURACY = Metric(
    "label_accuracy",
    "accuracy of labels",
    larger_is_better=True,
    in_per_cent=True,
    of_scores=label_accuracy,
    tasks=(LABELS,),
)
MAE = Metric("mae", "mean absolute error", of_scores=mean_absolute_error, tasks=(NUMBERS,))
R2 = Metric(
    "r2",
    "R²",
    larger_is_better=True,
    of_scores=determination,
    tasks=(NUMBERS,),
    on_demand=True,
)
BALANCED_ACCURACY, MACRO_F1, MICRO_F1, ROC_AUC, AVERAGE_PRECISION = SCIKIT = tuple(
    Metric(
        name,
        title,
        larger_is_better=True,
        in_per_cent=True,
        of_scores=from_scikit(name),
        tasks=tasks,
        on_demand=True,
    )
    for name, title, tasks in (
        ("balanced_accuracy", "balanced accuracy", (CLASSES,)),
        ("macro_f1", "macro F1", (CLASSES, LABELS)),
        ("micro_f1", "micro F1", (CLASSES, LABELS)),
        ("roc_auc", "ROC AUC", (CLASSES, LABELS)),
        ("average_precision", "average precision", (CLASSES, LABELS)),
    )
)
# What a run is judged by, where neither `metric=` nor the dataset says it.
BY_TASK = {CLASSES: ACCURACY, LABELS: MICRO_F1, NUMBERS: MAE}
LOSS = Metric("loss", "loss")
LAGRANGIAN = Metric("lagrangian", "Lagrangian", parts=(TRAIN,))
VIOLATION_MEAN = Metric("violation_mean", "mean violation")
VIOLATION_MAX = Metric("violation_max", "largest violation")
MULTIPLIER_NORM = Metric("multiplier_norm", "multiplier norm", parts=(TRAIN,))

# Under ages there is one multiplier per node and age: worth knowing before T is raised.
MULTIPLIER_MEMORY = Metric("multiplier_mb", "memory of the multipliers in MB", parts=(TRAIN,))

TRANSITIONS = Metric(
    "transitions_per_epoch", "evaluations of f_a per epoch, forward and backward", parts=(TRAIN,)
)
TRANSITIONS_BACKWARD = Metric(
    "transitions_backward", "those of them that are backward", parts=(TRAIN,)
)

FROM_ZERO_VIOLATION = Metric("from_zero_violation", "violation from zero", parts=(INFERENCE,))
CONVERGED = Metric(
    "converged", "graphs settled", larger_is_better=True, in_per_cent=True, parts=(INFERENCE,)
)
STEPS = Metric("steps", "steps", parts=(INFERENCE,))
# On average over the graphs, and of the one that has most.
GAIN = Metric("gain", "gain", parts=(INFERENCE,))
GAIN_LARGEST = Metric("gain_largest", "largest gain of a graph", parts=(INFERENCE,))
# Answers that are the same from zero and at the states of training.
EQUAL_ANSWERS = Metric(
    "equal_answers", "equal answers", larger_is_better=True, in_per_cent=True, parts=(INFERENCE,)
)
# Hops until the influence of a label falls below 1 % of its start.
REACH = Metric("reach", "reach", larger_is_better=True, parts=(INFERENCE,))
# 1 where persistent states and those found from zero agree by construction.
PATH_FREE = Metric("path_free", "path-free", parts=(INFERENCE,))

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        ACCURACY,
        *SCIKIT,
        LABEL_ACCURACY,
        MAE,
        R2,
        LOSS,
        LAGRANGIAN,
        VIOLATION_MEAN,
        VIOLATION_MAX,
        MULTIPLIER_NORM,
        MULTIPLIER_MEMORY,
        TRANSITIONS,
        TRANSITIONS_BACKWARD,
        FROM_ZERO_VIOLATION,
        CONVERGED,
        STEPS,
        GAIN,
        GAIN_LARGEST,
        EQUAL_ANSWERS,
        REACH,
        PATH_FREE,
        # Of a whole run rather than of a part.
        Metric("seconds", "seconds of computing", parts=()),
    )
}


def measure(scores: Tensor, targets: Tensor, asked: str = "") -> dict[str, Tensor]:
    """Every metric that such scores have, by name; those on demand only if they are asked for."""
    task = task_of(targets)
    return {
        m.name: m.of_scores(scores, targets)
        for m in METRICS.values()
        if m.of_scores and task in m.tasks and (m.name == asked or not m.on_demand)
    }


def score_metrics() -> list[Metric]:
    """The metrics that scores have: those that a run reports as its result."""
    return [metric for metric in METRICS.values() if metric.of_scores]


def leading(names: Container[str]) -> Metric:
    """What a run is judged by, of the metrics that it has: one on demand was asked for."""
    known = [metric for metric in score_metrics() if metric.name in names]
    asked = [metric for metric in known if metric.on_demand]
    return (asked or known or [ACCURACY])[0]


def leading_on(part: str, names: Container[str]) -> Metric:
    """The same of logged names, such as `test/roc_auc`."""
    return leading({metric.name for metric in score_metrics() if metric.on(part) in names})


def mean_of(name: str) -> str:
    """The stored name of a mean over units."""
    return f"{name}_mean"


def std_of(name: str) -> str:
    """The stored name of the population standard deviation over units."""
    return f"{name}_std"


def is_std(name: str) -> bool:
    return name.endswith("_std")


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
    return metric is None or (metric.larger_is_better and not is_std(name))
