"""A run once it is prepared: its units are trained, summarised and drawn, and its record closed.

Whoever starts runs uses this: `lpgnn train`, and every job of a sweep.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from lpgnn_cli.reporting.figures import make_figures
from lpgnn_cli.reporting.report import write_report
from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.runfolder import (
    DIVERGED,
    FAILED,
    FINISHED,
    INTERRUPTED,
    RunFolder,
    RunRecord,
    UnitResult,
)
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.signals import StopFlag
from lpgnn_cli.training.execute import execute
from lpgnn_cli.training.experiment import Experiment
from lpgnn_cli.training.observer import Observer
from lpgnn_cli.training.rescoring import forget_weights, rescore
from lpgnn_cli.training.suited import length_of


def compute(
    experiment: Experiment,
    folder: RunFolder,
    record: RunRecord,
    observers: Sequence[Observer],
    stop: StopFlag | None = None,
) -> RunSummary:
    """Train the units that are not finished yet; folder and record tell what came of it."""
    with (stop or StopFlag()).listening() as stop:
        for observer in observers:
            observer.run_started(folder, record.units, length_of(experiment.config))
        tasks = experiment.tasks(folder)
        results = execute(tasks, experiment.workers, observers, stop)
        record.state, record.reason = verdict(results, len(tasks), experiment.config.on_divergence)
        summary = summarise(folder)
        if record.state == FINISHED:
            if summary.best_epoch and rescore(experiment, folder, summary.best_epoch):
                summary = summarise(folder)
            forget_weights(folder)
        if experiment.config.figures:
            make_figures(folder)
        record.ended = time.time()
        folder.write_record(record)
        write_report(folder)
    for observer in observers:
        observer.run_ended(folder, summary.to_dict())
    return summary


def verdict(results: Sequence[UnitResult], units: int, on_divergence: str) -> tuple[str, str]:
    """The state of the run from those of its units, and why; not all of them may have started."""
    bad = [r for r in results if r.state != FINISHED]
    if on_divergence == "skip_fold" and len(bad) < len(results):
        bad = [r for r in bad if r.state != DIVERGED]
    for state in (FAILED, DIVERGED, INTERRUPTED):
        of_state = [r for r in bad if r.state == state]
        if of_state:
            return state, f"{of_state[0].unit}: {of_state[0].reason}"
    if len(results) < units:
        return INTERRUPTED, "stopped before all units had started"
    return FINISHED, ""
