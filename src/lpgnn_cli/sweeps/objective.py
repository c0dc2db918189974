"""The one value of a job by which a sweep sorts and a search decides."""

from __future__ import annotations

from lpgnn_cli.runsummary import HONEST_ACCURACY, OPTIMISTIC_ACCURACY, RunSummary

AUTO = "auto"


def metric_of(summary: RunSummary, metric: str) -> str:
    """`auto`: the honest accuracy where a validation part selects the epoch, else the best."""
    if metric != AUTO:
        return metric
    return HONEST_ACCURACY if summary.honest.rule.is_by_validation else OPTIMISTIC_ACCURACY


def objective(summary: RunSummary, metric: str) -> float:
    """The value; not a number where the run has none."""
    return summary.value(metric_of(summary, metric))
