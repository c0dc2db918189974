"""The units of a run as arrays, read from the run folder alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpgnn_cli.metrics import EPOCH, LOSS, TEST, TRAIN, VAL, WHEN, score_metrics
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED, INTERRUPTED, RunFolder, Unit, UnitResult
from lpgnn_cli.settings import read_flat_config

Array = NDArray[np.float64]

NOT_RUN = "not run"


@dataclass(frozen=True)
class UnitData:
    """What one unit left behind: its result, if it has ended, and its metrics epoch by epoch."""

    unit: Unit
    result: UnitResult | None
    columns: dict[str, Array]

    @property
    def name(self) -> str:
        return self.unit.name

    @property
    def state(self) -> str:
        if self.result:
            return self.result.state
        return INTERRUPTED if self.columns else NOT_RUN

    @property
    def epochs(self) -> int:
        return len(self.columns[EPOCH]) if self.columns else 0

    def selected(self, metric: str) -> float:
        """The metric at the selected epoch; NaN where there is none."""
        return self.result.metrics.get(metric, np.nan) if self.result else np.nan


@dataclass(frozen=True)
class Curves:
    """Metrics of several units on common epochs: `values[metric]` is units x epochs."""

    epochs: Array
    values: dict[str, Array]

    @property
    def num_units(self) -> int:
        return len(next(iter(self.values.values()), np.empty(0)))

    def without(self, part: str) -> Curves:
        kept = {n: v for n, v in self.values.items() if not n.startswith(f"{part}/")}
        return Curves(self.epochs, kept)

    def mean(self, metric: str) -> Array:
        return np.asarray(self.values[metric].mean(axis=0))

    def std(self, metric: str) -> Array:
        # The population std (ddof = 0), as the code of the GIN protocol commonly takes it.
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(self.values[metric].std(axis=0))


def read_units(run: RunFolder) -> list[UnitData]:
    return [
        UnitData(unit, run.read_result(unit.name), _read_columns(run, unit.name))
        for unit in run.read_record().units
    ]


def scored_part(units: Sequence[UnitData]) -> str:
    """The part whose curve a run is judged by: the test part, even where that is the training
    part once more, since training itself sees its nodes on the way."""
    logged = [name for u in units for name in (*u.columns, *(u.result.metrics if u.result else ()))]
    tested = any(metric.on(TEST) in logged for metric in score_metrics())
    return TEST if tested else TRAIN


def all_supervised(run: RunFolder) -> bool:
    """Whether the nodes that are scored as test nodes are the training nodes themselves."""
    settings = read_flat_config(run.config_path)
    return (
        settings.get("protocol.name") == "transductive"
        and settings.get("protocol.supervised_per_class") == "null"
    )


def finished(units: Sequence[UnitData]) -> list[UnitData]:
    return [u for u in units if u.state == FINISHED]


def failed(units: Sequence[UnitData]) -> list[UnitData]:
    return [u for u in units if u.state in (DIVERGED, FAILED)]


def common_curves(units: Sequence[UnitData]) -> Curves:
    """The curves of the finished units; of all that got anywhere, while none is finished.

    Units that stop early on a validation part have different lengths: after its end a unit keeps
    its last value. Otherwise only the epochs that all of these units have count.
    """
    counted = [u for u in finished(units) or units if u.epochs]
    if not counted:
        return Curves(np.empty(0), {})
    lengths = [u.epochs for u in counted]
    stops_early = all(LOSS.on(VAL) in u.columns for u in counted)
    length = max(lengths) if stops_early else min(lengths)
    longest = counted[int(np.argmax(lengths))]
    names = [
        name
        for name in longest.columns
        if name not in WHEN and all(name in u.columns for u in counted)
    ]
    values = {n: np.stack([_fit(u.columns[n], length) for u in counted]) for n in names}
    return Curves(longest.columns[EPOCH][:length], values)


def _fit(values: Array, length: int) -> Array:
    missing = max(0, length - len(values))
    return np.pad(values[:length], (0, missing), mode="edge")


def _read_columns(run: RunFolder, unit: str) -> dict[str, Array]:
    rows = run.read_metrics(unit)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
