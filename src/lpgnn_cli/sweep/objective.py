"""The one figure of a job by which a sweep sorts and a search decides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

AUTO = "auto"
HONEST, OPTIMISTIC = "honest/accuracy_mean", "cv/accuracy_mean"
BY_VALIDATION = ("validation loss", "validation accuracy")


def metric_of(summary: Mapping[str, Any], metric: str) -> str:
    """`auto`: the honest accuracy where a validation part selects the epoch, else the best."""
    if metric != AUTO:
        return metric
    return HONEST if summary.get("honest/rule") in BY_VALIDATION else OPTIMISTIC


def objective(summary: Mapping[str, Any], metric: str) -> float:
    """The figure; not a number where the run has none."""
    value = summary.get(metric_of(summary, metric), math.nan)
    return float(value) if isinstance(value, int | float) else math.nan
