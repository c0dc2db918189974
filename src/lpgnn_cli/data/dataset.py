"""A dataset: its graphs, and what training must know about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.features import NodeFeatures
from lpgnn_cli.data.positional import laplacian_eigenvectors
from lpgnn_cli.data.vocabulary import Vocabulary


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
    ) -> Dataset:
        """Give the nodes of `batch` these features, with `positional` eigenvectors behind them."""
        values, continuous = features.values, features.continuous
        if positional:
            encoding = laplacian_eigenvectors(batch, positional)
            values = torch.cat([values, encoding], dim=1)
            continuous = torch.cat([continuous, continuous.new_zeros(positional)])
        batch = batch.with_features(values)
        batch.validate()
        return cls(name, batch, continuous, positional, parts, seeded, vocabulary or Vocabulary())

    def fingerprint(self) -> str:
        """The content, without the eigenvectors: their signs and, in degenerate eigenspaces, their
        directions are the linear algebra library's choice, so only their number counts."""
        stable = self.batch.features[:, : self.batch.features.shape[1] - self.positional]
        content = self.batch.with_features(stable).fingerprint()
        return hashlib.sha256(f"{content} positional {self.positional}".encode()).hexdigest()
