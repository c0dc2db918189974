"""A run folder as an object: what came out of training."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpgnn_cli.api.html import table
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import metric_text
from lpgnn_cli.metrics import ACCURACY, METRICS
from lpgnn_cli.reporting.summary import fold_rows
from lpgnn_cli.reporting.text import describe
from lpgnn_cli.reporting.units import read_units, scored_part
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.stored import read_yaml


@dataclass(frozen=True)
class Fold:
    """One fold with one seed; `accuracy` is the honest one, at `selected_epoch`, and `value` the
    same in the metric that the run is judged by."""

    name: str
    state: str
    accuracy: float
    train_accuracy: float
    epochs: int
    selected_epoch: int
    seconds: float
    reason: str
    value: float


class Run(os.PathLike[str]):
    """A run, read from its folder; the folder is the truth, and this always says what it says."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._run = RunFolder.open(Path(folder).absolute())

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def folder(self) -> Path:
        return self._run.path

    @property
    def state(self) -> str:
        """finished, running, interrupted, diverged or failed."""
        return self._run.actual_state(self._run.read_record())

    @property
    def accuracy(self) -> float:
        """The honest mean over the folds, as a fraction; not a number while no fold has ended."""
        return RunSummary.read(self._run).honest.accuracy.mean

    @property
    def metric(self) -> str:
        """What the run is judged by: accuracy, unless `metric=` or the dataset says otherwise."""
        return RunSummary.read(self._run).metric.name

    @property
    def value(self) -> float:
        """The honest mean over the folds in that metric."""
        return RunSummary.read(self._run).honest.figure.mean

    @property
    def summary(self) -> dict[str, Any]:
        """Everything that is reported, as summary.json has it."""
        return self._run.read_summary()

    @property
    def folds(self) -> list[Fold]:
        units = read_units(self._run)
        part, judge = scored_part(units), RunSummary.read(self._run).metric
        rows = fold_rows(units, part, None, ACCURACY)
        values = [row.figure for row in fold_rows(units, part, None, judge)]
        return [
            Fold(
                name=row.unit,
                state=row.state,
                accuracy=row.figure,
                train_accuracy=row.train,
                epochs=row.epochs,
                selected_epoch=row.selected_epoch,
                seconds=row.seconds,
                reason=row.reason,
                value=value,
            )
            for row, value in zip(rows, values, strict=True)
        ]

    @property
    def config(self) -> dict[str, Any]:
        """All settings of the run, nested as in config.yaml."""
        return read_yaml(self._run.config_path)

    def metrics(self, fold: str) -> list[dict[str, float]]:
        """One row per epoch of a fold, such as `fold-00`."""
        names = [unit.name for unit in self._run.read_record().units]
        if fold not in names:
            raise UserError(f"{self.folder} has no unit {fold}; it has {', '.join(names)}.")
        return self._run.read_metrics(fold)

    def __repr__(self) -> str:
        return f"<Run {self.folder.name}: {self.state}, {self._figure()}>"

    def _figure(self) -> str:
        metric = METRICS[self.metric]
        return f"{metric.title} {metric_text(metric.name, self.value)}"

    def _repr_html_(self) -> str:
        metric = METRICS[self.metric]
        rows = [
            [f.name, f.state, metric_text(metric.name, f.value), str(f.epochs)] for f in self.folds
        ]
        title = f"{describe(self._run)}: {self.state}, {self._figure()}"
        return table(title, ["fold", "state", metric.title, "epochs"], rows)
