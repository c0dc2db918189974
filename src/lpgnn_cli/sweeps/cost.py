"""What a job will cost, from what earlier runs of the same dataset and propagation took.

Seconds of computing per epoch and unit, the median over earlier runs; nothing is guessed where
there are none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.training import KFoldConfig, NestedConfig
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.tracking.pastruns import PastRun, runs_in_folders

Kind = tuple[str, str]


class CostModel:
    """Seconds per epoch, unit and layer, by dataset and propagation."""

    def __init__(self, root: Path) -> None:
        found: dict[Kind, list[float]] = defaultdict(list)
        lengths: dict[Kind, list[int]] = defaultdict(list)
        depths: dict[Kind, list[int]] = defaultdict(list)
        for past in runs_in_folders(root)[0]:
            rate = _rate(past)
            if rate is not None:
                found[_kind_of(past)].append(rate)
                lengths[_kind_of(past)].append(int(past.params["epochs"]))
                depths[_kind_of(past)].append(int(past.params["layers"]))
        self.rates = {kind: median(rates) for kind, rates in found.items()}
        # Where the data decides on length and layers, it has decided before.
        self.epochs = {kind: median(epochs) for kind, epochs in lengths.items()}
        self.layers = {kind: median(layers) for kind, layers in depths.items()}

    def seconds(self, config: TrainConfig) -> float | None:
        """Of computing, all units together; None where no earlier run tells."""
        kind = config.dataset.name, config.propagation.name
        rate = self.rates.get(kind)
        if rate is None:
            return None
        epochs = config.epochs or self.epochs[kind]
        return rate * epochs * units_of(config) * (config.layers or self.layers[kind])


def units_of(config: TrainConfig) -> int:
    protocol = config.protocol
    folds = 1
    if isinstance(protocol, KFoldConfig | NestedConfig):
        folds = protocol.folds
    if isinstance(protocol, NestedConfig):
        folds = 1 if protocol.fold is not None else folds
        folds *= (protocol.inner_folds or 1) if protocol.selects else 1
    return folds * protocol.repeats


def _kind_of(past: PastRun) -> Kind:
    return past.params.get("dataset.name", ""), past.params.get("propagation.name", "")


def _rate(past: PastRun) -> float | None:
    summary = RunSummary.from_dict(past.metrics)
    try:
        work = summary.units_finished * int(past.params["epochs"]) * int(past.params["layers"])
    except (KeyError, ValueError):
        return None
    return summary.seconds / work if summary.seconds and work else None


def total(costs: Sequence[float | None]) -> tuple[float, int]:
    """The sum of what is known, and how many are not."""
    known = [cost for cost in costs if cost is not None]
    return sum(known), len(costs) - len(known)
