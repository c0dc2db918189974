"""The one value of a job by which a sweep sorts and a search decides."""

from __future__ import annotations

from lpgnn_cli.metrics import Metric, mean_of
from lpgnn_cli.runfolder import HONEST
from lpgnn_cli.runsummary import RunSummary

AUTO = "auto"


def metric_of(metric: str, judge: Metric) -> str:
    """`auto` is the honest value of what the runs are judged by: no test label chose its epoch."""
    return mean_of(f"{HONEST}/{judge.name}") if metric == AUTO else metric


def objective(summary: RunSummary, metric: str) -> float:
    """The value; not a number where the run has none."""
    return summary.value(metric_of(metric, summary.metric))


def search_value(summary: RunSummary, metric: str) -> float:
    """The same for a search, which goes upwards by `auto`, whatever the runs are judged by."""
    downwards = metric == AUTO and not summary.metric.larger_is_better
    return -objective(summary, metric) if downwards else objective(summary, metric)
