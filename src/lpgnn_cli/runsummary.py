"""`summary.json` with types: what a run reports of all its units.

The file is flat (`honest/accuracy_mean`: 0.87), as MLflow and `lpgnn runs` have it; `to_dict` and
`from_dict` alone know how its names are made. Accuracies are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lpgnn_cli.metrics import (
    ACCURACY,
    INFERENCE,
    MULTIPLIER_MEMORY,
    PARTS,
    PATH_FREE,
    TRAIN,
    TRANSITIONS,
    TRANSITIONS_BACKWARD,
    VIOLATION_MEAN,
    Metric,
    find_metric,
    leading,
    mean_of,
    score_metrics,
    std_of,
)
from lpgnn_cli.runfolder import (
    HONEST,
    OPTIMISTIC,
    OPTIMISTIC_FROM_ZERO,
    PER_FOLD_MAXIMUM,
    PERSISTENT,
    RESCORED,
    Rule,
    RunFolder,
)


@dataclass(frozen=True)
class MeanStd:
    """Mean and population standard deviation over units; NaN where no unit has a value."""

    mean: float = math.nan
    std: float = math.nan


@dataclass(frozen=True)
class Selection:
    """The metrics of class scores, by name, at the epochs that one rule selects."""

    rule: Rule
    metrics: Mapping[str, MeanStd] = field(default_factory=dict)
    # The one epoch of all units, or the mean of theirs.
    epoch: float = math.nan

    @property
    def accuracy(self) -> MeanStd:
        return self.metrics.get(ACCURACY.name, MeanStd())

    @property
    def metric(self) -> Metric:
        """What the run is judged by."""
        return leading(self.metrics)

    @property
    def figure(self) -> MeanStd:
        """In that metric."""
        return self.metrics.get(self.metric.name, MeanStd())

    def to_dict(self, prefix: str) -> dict[str, float]:
        """`prefix` is what the stored names begin with."""
        stored: dict[str, float] = {}
        for name, value in self.metrics.items():
            stored[mean_of(f"{prefix}/{name}")] = value.mean
            stored[std_of(f"{prefix}/{name}")] = value.std
        return stored

    @classmethod
    def from_dict(
        cls, stored: Mapping[str, Any], prefix: str, rule: Rule, epoch: float = math.nan
    ) -> Selection:
        metrics = {}
        for metric in score_metrics():
            name = f"{prefix}/{metric.name}"
            if mean_of(name) in stored:
                metrics[metric.name] = MeanStd(
                    stored[mean_of(name)], stored.get(std_of(name), math.nan)
                )
        return cls(rule, metrics, epoch)

    @classmethod
    def of_rescored(cls, stored: Mapping[str, Any]) -> Selection:
        """What `lpgnn eval` stored."""
        return cls.from_dict(stored, RESCORED, Rule.NONE)


HONEST_ACCURACY = mean_of(f"{HONEST}/{ACCURACY.name}")
OPTIMISTIC_ACCURACY = mean_of(f"{OPTIMISTIC}/{ACCURACY.name}")
HONEST_STD = std_of(f"{HONEST}/{ACCURACY.name}")
PERSISTENT_ACCURACY = mean_of(f"{PERSISTENT}/{ACCURACY.name}")
HONEST_RULE = f"{HONEST}/rule"
HONEST_EPOCH = mean_of(f"{HONEST}/epoch")
BEST_EPOCH = f"{OPTIMISTIC}/best_epoch"
SECONDS = "seconds"
# Where version 0.1 kept the accuracy from zero; its honest one was that of persistent states.
FROM_ZERO_OF_0_1 = f"{INFERENCE}/from_zero_accuracy_mean"
PERSISTENT_OF_0_1 = f"{INFERENCE}/persistent_accuracy_mean"
# Accuracies from zero and of persistent states that differ by no more count as the same.
AGREEMENT = 0.01


def training_metrics() -> list[Metric]:
    """What is reported of the training part: how good it is, and what an epoch costs."""
    return [*score_metrics(), MULTIPLIER_MEMORY, TRANSITIONS, TRANSITIONS_BACKWARD]


def is_optimistic(name: str) -> bool:
    """Whether test parts had a say in the epoch behind a stored name."""
    return name.partition("/")[0] in (OPTIMISTIC, OPTIMISTIC_FROM_ZERO, PER_FOLD_MAXIMUM)


@dataclass(frozen=True)
class RunSummary:
    """What `lpgnn train` reports: `optimistic` is chosen on the test parts, `honest` without.

    *The* accuracy of a run is the honest one, of the test phase from zero.
    """

    units: int = 0
    units_finished: int = 0
    units_failed: int = 0
    # Time of computing, all units together: the same however many ran side by side.
    seconds: float = 0.0
    # None has metrics where no unit has finished. The best mean epoch: of the curves of training,
    # and from zero, where that is another thing.
    optimistic: Selection = Selection(Rule.BEST_MEAN_EPOCH)
    best_from_zero: Selection = Selection(Rule.BEST_MEAN_EPOCH)
    per_fold_maximum: Selection = Selection(Rule.BEST_OWN_EPOCH)
    honest: Selection = Selection(Rule.NONE)
    # At the honest epochs, the states carried along through training, where there are such.
    persistent: Selection = Selection(Rule.NONE)
    # The rest at the epochs of the honest rule: metrics of class scores on the training part by
    # name, mean violations by part, what is learnt of inference by its stored name.
    train: Mapping[str, float] = field(default_factory=dict)
    violation: Mapping[str, float] = field(default_factory=dict)
    inference: Mapping[str, float] = field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        """What the run is judged by."""
        return leading(self.honest.metrics or self.optimistic.metrics or self.train)

    @property
    def best_epoch(self) -> int | None:
        """The epoch that is best on average over all units."""
        epoch = self.optimistic.epoch
        return int(epoch) if math.isfinite(epoch) else None

    @property
    def path_free(self) -> bool:
        """Whether the curves of training are those of the test phase from zero, too."""
        agree = self.inference.get(mean_of(PATH_FREE.name), 0.0) == 1
        return agree or not self.persistent.metrics

    @property
    def from_zero_minus_persistent(self) -> float:
        """In the metric of the run, at the honest epochs; NaN where no states persist."""
        return self.honest.figure.mean - self.persistent.figure.mean

    @property
    def states_disagree(self) -> bool:
        """Whether the states of training promise another accuracy than a user will find."""
        # What is no share has no natural size of a difference.
        return self.metric.in_per_cent and (abs(self.from_zero_minus_persistent) > AGREEMENT + 1e-9)

    @property
    def all_supervised(self) -> bool:
        """Whether accuracies are those of training, as there is nothing to test on."""
        return self.honest.rule == Rule.ALL_SUPERVISED

    def value(self, name: str) -> float:
        """Whatever is stored under a name; NaN where it is no number or is not there."""
        value = self.to_dict().get(name, math.nan)
        return float(value) if isinstance(value, int | float) else math.nan

    def to_dict(self) -> dict[str, float | str]:
        stored: dict[str, float | str] = {
            "units": self.units,
            "units_finished": self.units_finished,
            "units_failed": self.units_failed,
            SECONDS: self.seconds,
        }
        if self.best_epoch is not None:
            stored[BEST_EPOCH] = self.best_epoch
        stored |= self.optimistic.to_dict(OPTIMISTIC)
        stored |= self.best_from_zero.to_dict(OPTIMISTIC_FROM_ZERO)
        stored |= self.per_fold_maximum.to_dict(PER_FOLD_MAXIMUM)
        if self.honest.rule != Rule.NONE:
            stored[HONEST_RULE] = str(self.honest.rule)
        stored |= self.honest.to_dict(HONEST)
        stored |= self.persistent.to_dict(PERSISTENT)
        stored[HONEST_EPOCH] = self.honest.epoch
        stored |= {mean_of(f"{TRAIN}/{name}"): value for name, value in self.train.items()}
        stored |= {VIOLATION_MEAN.on(part): value for part, value in self.violation.items()}
        stored |= {f"{INFERENCE}/{name}": value for name, value in self.inference.items()}
        return _known(stored)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RunSummary:
        """From all that is stored, or from its numbers alone, as MLflow has them."""
        if FROM_ZERO_OF_0_1 in stored:
            stored = _with_names_of_today(stored)
        rule = Rule(stored.get(HONEST_RULE, Rule.NONE))
        train = {m.name: mean_of(m.on(TRAIN)) for m in training_metrics()}
        parts = {part: VIOLATION_MEAN.on(part) for part in PARTS}
        epoch = {name: stored.get(name, math.nan) for name in (BEST_EPOCH, HONEST_EPOCH)}
        return cls(
            units=int(stored.get("units", 0)),
            units_finished=int(stored.get("units_finished", 0)),
            units_failed=int(stored.get("units_failed", 0)),
            seconds=float(stored.get(SECONDS, 0.0)),
            optimistic=Selection.from_dict(
                stored, OPTIMISTIC, Rule.BEST_MEAN_EPOCH, epoch[BEST_EPOCH]
            ),
            best_from_zero=Selection.from_dict(stored, OPTIMISTIC_FROM_ZERO, Rule.BEST_MEAN_EPOCH),
            per_fold_maximum=Selection.from_dict(stored, PER_FOLD_MAXIMUM, Rule.BEST_OWN_EPOCH),
            honest=Selection.from_dict(stored, HONEST, rule, epoch[HONEST_EPOCH]),
            persistent=Selection.from_dict(stored, PERSISTENT, rule),
            train={name: stored[key] for name, key in train.items() if key in stored},
            violation={part: stored[key] for part, key in parts.items() if key in stored},
            inference={
                key.removeprefix(f"{INFERENCE}/"): value
                for key, value in stored.items()
                if key.startswith(f"{INFERENCE}/")
            },
        )

    @classmethod
    def read(cls, run: RunFolder) -> RunSummary:
        """That of a run folder; an empty one where it has none yet."""
        return cls.from_dict(run.read_summary())


def is_reported(name: str) -> bool:
    """Whether a run may have a number under that name."""
    stored = {name: 1.0, mean_of(name.removesuffix("_std")): 1.0}
    known = find_metric(name) is not None or not name.startswith(f"{INFERENCE}/")
    return known and RunSummary.from_dict(stored).value(name) == 1.0


@dataclass(frozen=True)
class EvalSummary:
    """What `lpgnn eval` reports: means over the units that were scored again, from zero."""

    units: int
    scored: Selection
    # At the states of the checkpoints, where they hold any of these graphs.
    persistent: Selection = Selection(Rule.CHECKPOINT)
    # Mean violation, largest violation and loss of the test part, by their logged names.
    test: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, float | str]:
        scored, persistent = self.scored.to_dict(RESCORED), self.persistent.to_dict(PERSISTENT)
        return _known({**scored, "units": float(self.units), **self.test, **persistent})


def _with_names_of_today(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A summary of version 0.1: no spread over units is known from zero."""
    today = dict(stored)
    persistent = [today.pop(name, math.nan) for name in (HONEST_ACCURACY, HONEST_STD)]
    today[PERSISTENT_ACCURACY], today[std_of(f"{PERSISTENT}/{ACCURACY.name}")] = persistent
    today[HONEST_ACCURACY] = today.pop(FROM_ZERO_OF_0_1)
    today.pop(PERSISTENT_OF_0_1, None)
    return today


def _known(stored: Mapping[str, float | str]) -> dict[str, float | str]:
    """Without what no unit has a value for."""
    return {k: v for k, v in stored.items() if not (isinstance(v, float) and math.isnan(v))}
