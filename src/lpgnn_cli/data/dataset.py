"""A dataset: its graphs, and what training must know about them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from lpgnn_cli.config.dataset import DATASETS, DatasetConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.features import (
    NodeFeatures,
    NodeTables,
    choose_features,
    continuous_columns,
)
from lpgnn_cli.data.masks import Masks
from lpgnn_cli.data.positional import laplacian_eigenvectors
from lpgnn_cli.data.vocabulary import Vocabulary
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import BY_TASK, METRICS, Metric


@dataclass(frozen=True, eq=False)
class Dataset:
    """Graphs with the roles of their feature columns and, for generated tasks, their parts."""

    name: str
    batch: GraphBatch
    # (F,) bool: columns to standardise by training statistics.
    continuous: Tensor
    # How many trailing columns are Laplacian eigenvectors, whose signs are flipped in training.
    positional: int
    # Graph indices of "train", "val" and "test", where the task itself says which is which.
    parts: dict[str, Tensor] | None
    # Whether another seed gives other graphs.
    seeded: bool
    # What the columns and classes stand for, where the data itself says so.
    vocabulary: Vocabulary
    # Indices of the nodes that have a target, where not all of them do.
    scored: Tensor | None = None
    # Published splits of the nodes.
    masks: Masks | None = None
    # The metric that its results are published in; empty: that of its kind of targets.
    metric: str = ""

    @classmethod
    def build(
        cls,
        name: str,
        batch: GraphBatch,
        features: NodeFeatures,
        *,
        positional: int,
        parts: dict[str, Tensor] | None = None,
        seeded: bool = False,
        vocabulary: Vocabulary | None = None,
        scored: Tensor | None = None,
        masks: Masks | None = None,
        metric: str = "",
    ) -> Dataset:
        """Give the nodes of `batch` these features, with `positional` eigenvectors behind them."""
        values, continuous = features.values, features.continuous
        if positional:
            encoding = laplacian_eigenvectors(batch, positional)
            values = torch.cat([values, encoding], dim=1)
            continuous = torch.cat([continuous, continuous.new_zeros(positional)])
        batch = batch.with_features(values)
        batch.validate()
        vocabulary = vocabulary or Vocabulary()
        return cls(
            name, batch, continuous, positional, parts, seeded, vocabulary, scored, masks, metric
        )

    @classmethod
    def from_batch(
        cls,
        config: DatasetConfig,
        batch: GraphBatch,
        *,
        parts: dict[str, Tensor] | None = None,
        seeded: bool = False,
        scored: Tensor | None = None,
        masks: Masks | None = None,
        metric: str = "",
    ) -> Dataset:
        """Graphs under the settings that every dataset has.

        `features=auto` are those of the batch, continuous unless they are indicators.
        """
        given = batch.features
        tables = NodeTables(
            labels=torch.zeros(batch.num_nodes, 0, dtype=torch.int64),
            attributes=given,
            degrees=batch.arcs.in_degree,
        )
        if config.features == "auto":
            features = NodeFeatures(given, continuous_columns(given))
        else:
            features = choose_features(config.features, config.name, tables)
        return cls.build(
            config.name,
            batch,
            features,
            positional=config.positional,
            parts=parts,
            seeded=seeded,
            scored=scored,
            masks=masks,
            metric=metric,
        )

    def judged_by(self, asked: str) -> Metric:
        """The metric of a run on it; `auto` is its own."""
        task = self.batch.task
        name = (self.metric or BY_TASK[task].name) if asked == "auto" else asked
        metric = METRICS[name]
        if task not in metric.tasks:
            fitting = ", ".join(m.name for m in METRICS.values() if m.of_scores and task in m.tasks)
            raise UserError(
                f"metric={name} is not for {task}, which {self.name} has: {fitting} are."
            )
        return metric

    def fingerprint(self) -> str:
        """The content, without the eigenvectors: their signs and, in degenerate eigenspaces, their
        directions are the linear algebra library's choice, so only their number counts."""
        stable = self.batch.features[:, : self.batch.features.shape[1] - self.positional]
        content = self.batch.with_features(stable).fingerprint()
        return hashlib.sha256(f"{content} positional {self.positional}".encode()).hexdigest()


@dataclass(frozen=True)
class Request:
    """What a loader may want to know beside the settings of its dataset."""

    seed: int = 0
    data_root: str | None = None
    # That of a trained network, which must get the columns that it knows.
    vocabulary: Vocabulary | None = None
    # Whether the targets in the data count; if not, they may be missing, and are not looked at.
    targets: bool = True


L = TypeVar("L", bound=Callable[[Any, Request], Dataset])


def dataset(
    name: str, settings: type[DatasetConfig] = DatasetConfig, *, protocol: str = "kfold"
) -> Callable[[L], L]:
    """Decorator: `dataset=<name>` is what this function makes of its settings and a `Request`.

    `protocol` is the one that a plug-in's dataset brings; lpgnn's own say it in `conf/dataset/`.
    """

    def add(loader: L) -> L:
        if not callable(loader):
            raise UserError(f"dataset={name} is not a function of its settings and a Request.")
        overrides = (("/protocol@_global_.protocol", protocol),)
        DATASETS.add(name, DatasetConfig, settings, loader, overrides)
        return loader

    return add
