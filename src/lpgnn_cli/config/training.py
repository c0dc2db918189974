"""Schemas of how a network is trained and scored: protocol, optim, learning rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lpgnn_cli.config.fields import positive, setting


@dataclass
class ProtocolConfig:
    """How folds, seeds and epochs become one reported number."""

    # Whether the nodes of one set of graphs are divided, rather than the graphs.
    of_nodes: ClassVar[bool] = False

    name: str = setting(choices=("kfold", "holdout", "transductive", "masks", "nested"))
    seeds: int = setting(low=1, high=10_000)
    workers: str = setting(affects_results=False)

    @property
    def repeats(self) -> int:
        """Initialisations of each fold."""
        return self.seeds


@dataclass
class KFoldConfig(ProtocolConfig):
    """Stratified k-fold, without a validation part."""

    folds: int = setting(low=2, high=100_000)


@dataclass
class ValidatedConfig(ProtocolConfig):
    """Early stopping on a validation part, which selects the epoch."""

    select: str = setting(choices=("auto", "last", "loss", "accuracy", "metric"))
    patience: int = setting(low=1)


@dataclass
class HoldoutConfig(ValidatedConfig):
    """Train, validation and test graphs."""

    splits: str | None = setting()
    validation: float = setting(low=0, low_open=True, high=1, high_open=True)
    test: float = setting(low=0, low_open=True, high=1, high_open=True)


@dataclass
class MasksConfig(ValidatedConfig):
    """Train, validation and test nodes of the same graphs."""

    of_nodes: ClassVar[bool] = True

    folds: int | None = setting(low=1, high=100_000)
    validation: float | None = setting(low=0, low_open=True, high=1, high_open=True)
    test: float | None = setting(low=0, low_open=True, high=1, high_open=True)

    def disagreements(self) -> Iterator[str]:
        if (self.validation is None) != (self.test is None):
            yield "protocol.validation and protocol.test draw masks together: set both or none."


@dataclass
class NestedConfig(ValidatedConfig):
    """Outer folds assess, inner parts select."""

    folds: int = setting(low=2)
    splits: str | None = setting()
    validation: float = setting(low=0, low_open=True, high=1, high_open=True)
    inner_folds: int | None = setting(low=2)
    retrain: int = setting(low=1)
    stage: str = setting(choices=("select", "assess"))
    fold: int | None = setting(low=0)

    @property
    def selects(self) -> bool:
        return self.stage == "select"

    @property
    def repeats(self) -> int:
        return self.seeds if self.selects else self.retrain

    def disagreements(self) -> Iterator[str]:
        if self.fold is not None and self.splits is None and self.fold >= self.folds:
            yield f"protocol.fold={self.fold}: the outer folds go from 0 to {self.folds - 1}."


@dataclass
class TransductiveConfig(ProtocolConfig):
    """One graph, some nodes supervised."""

    of_nodes: ClassVar[bool] = True

    supervised_per_class: int | None = setting(low=1)


@dataclass
class OptimConfig:
    """The optimiser of theta, states and multipliers."""

    name: str = setting(choices=("adam", "adamw", "sgd", "rmsprop"))
    weight_decay: float = setting(low=0)
    decoupled_decay: float = setting(low=0)
    schedule: str = setting(choices=("step", "cosine", "linear"))
    decay: float = setting(low=0, low_open=True, high=1)
    decay_every: int = setting(low=1)
    clip: float | None = positive()
    batch_graphs: int | None = setting(low=1)
    batch_nodes: int | None = setting(low=1)


@dataclass
class SgdConfig(OptimConfig):
    """Plain gradient steps, with momentum if wished."""

    momentum: float = setting(low=0, high=1, high_open=True)


@dataclass
class LearningRates:
    """One learning rate for each player of the saddle-point search."""

    theta: float = positive()
    state: float = positive()
    multiplier: float | None = positive()


@dataclass
class AlikeConfig:
    """Where neighbours have the same class: scores that are averaged over them."""

    when: str = setting(choices=("never", "auto", "always"))
    gain: float = setting(low=0, low_open=True, high=1, high_open=True)
    lr: float = positive()
    weight_decay: float = setting(low=0)
