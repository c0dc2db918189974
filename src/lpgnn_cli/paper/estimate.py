"""How long runs and nested sweeps may take, from what collected ones took.

Work is counted in epochs x layers x graphs, over all folds, seeds and combinations, as if no unit
stopped early. A rate is seconds by work: early stops, sizes of graphs and batches are part of it,
so it is taken from what is most alike.
"""

from __future__ import annotations

import contextlib
import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from lpgnn_cli.data.catalogue import CATALOGUE
from lpgnn_cli.data.public_splits import PUBLIC
from lpgnn_cli.errors import UserError
from lpgnn_cli.paper.nested import NestedSweep
from lpgnn_cli.paper.presets import composed_settings
from lpgnn_cli.paper.runs import PresetRun

PUBLIC_FOLDS = {"csl": 5, "enzymes": 10}
# Of the kinds below, those that know the dataset.
LIKE = 3

Settings = Mapping[str, str]
Kind = tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """Seconds of computing; `rough` where no run on the same dataset tells."""

    seconds: float
    rough: bool


class Rates:
    """Seconds by work, of everything that was collected."""

    def __init__(self, runs: Iterable[PresetRun], sweeps: Iterable[NestedSweep]) -> None:
        found: dict[Kind, list[float]] = defaultdict(list)
        for settings, units, seconds in [*_of_runs(runs), *_of_sweeps(sweeps)]:
            for kind in _kinds(settings):
                found[kind].append(seconds / (units * _work(settings)))
        self._rates = {kind: median(rates) for kind, rates in found.items()}

    def run(self, settings: Settings) -> Estimate | None:
        """Of a run; None where nothing was collected at all."""
        folds = int(settings.get("protocol.folds", "1"))
        if settings.get("protocol.splits") == PUBLIC:
            folds = PUBLIC_FOLDS.get(settings["dataset.name"].lower(), 1)
        return self._estimate(settings, folds * int(settings.get("protocol.seeds", "1")))

    def sweep(self, settings: Settings, combinations: int) -> Estimate | None:
        """Of a sweep under `protocol=nested`."""
        return self._estimate(settings, _nested_units(settings, combinations))

    def _estimate(self, settings: Settings, units: int) -> Estimate | None:
        for place, kind in enumerate(_kinds(settings)):
            if kind in self._rates:
                seconds = self._rates[kind] * units * _work(settings)
                return Estimate(seconds, rough=place >= LIKE)
        return None


Sample = tuple[Settings, int, float]


def _of_runs(runs: Iterable[PresetRun]) -> Iterable[Sample]:
    for run in runs:
        seconds = math.fsum(unit.seconds for unit in run.units if math.isfinite(unit.seconds))
        if seconds:
            yield run.settings, len(run.units), seconds


def _of_sweeps(sweeps: Iterable[NestedSweep]) -> Iterable[Sample]:
    for sweep in sweeps:
        # A command of an earlier version may no longer be one.
        with contextlib.suppress(UserError):
            if sweep.seconds:
                settings = composed_settings(*shlex.split(sweep.command)[2:])
                yield settings, _nested_units(settings, sweep.combinations), sweep.seconds


def _nested_units(settings: Settings, combinations: int) -> int:
    """Every combination on the inner parts of every outer fold, then each choice again."""
    folds, retrain = int(settings["protocol.folds"]), int(settings["protocol.retrain"])
    inner = settings["protocol.inner_folds"]
    parts = (1 if inner == "null" else int(inner)) * int(settings["protocol.seeds"])
    return folds * (combinations * parts + retrain)


def _work(settings: Settings) -> int:
    """Of one unit."""
    return int(settings["epochs"]) * int(settings.get("layers", "1")) * _graphs(settings)


def _graphs(settings: Settings) -> int:
    name = settings["dataset.name"]
    known = [e.graphs for option, e in CATALOGUE.items() if name in (option, e.tu_name)]
    return known[0] if known else 1


def _kinds(settings: Settings) -> Sequence[Kind]:
    """What a rate may be taken from, the most alike first."""
    data, how = settings["dataset.name"], settings["propagation.name"]
    protocol = settings["protocol.name"]
    return [
        (protocol, data, how, settings["aggregator.name"]),
        (protocol, data, how),
        ("any protocol", data, how),
        (protocol, "any data", how),
        (how,),
        (),
    ]
