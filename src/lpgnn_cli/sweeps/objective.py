"""The one value of a job by which a sweep sorts and a search decides."""

from __future__ import annotations

from lpgnn_cli.runsummary import HONEST_ACCURACY, RunSummary

AUTO = "auto"


def metric_of(metric: str) -> str:
    """`auto` is the honest accuracy: no test label has chosen its epoch."""
    return HONEST_ACCURACY if metric == AUTO else metric


def objective(summary: RunSummary, metric: str) -> float:
    """The value; not a number where the run has none."""
    return summary.value(metric_of(metric))
