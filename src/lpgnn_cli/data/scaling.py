"""Features on one scale, by the statistics of the training nodes alone: the continuous ones are
standardised, and words are scaled together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.dataset import Dataset

# What the words of a node add up to, on average: as many as a title and a few lines have, so that
# counts, weights and marks of words call for the same learning rate.
WORDS = 20.0


def are_words(features_NF: Tensor) -> bool:
    """Whether most of it is zero, nothing negative, and a row has several entries: no one-hots."""
    nodes, columns = features_NF.shape
    there = int(torch.count_nonzero(features_NF))
    several, sparse = there >= 5 * nodes, there <= nodes * columns / 2
    return nodes > 0 and several and sparse and float(features_NF.min()) >= 0


@dataclass(frozen=True, eq=False)
class FeatureScaler:
    """(x - mean) / std by column; mean 0 and std 1 for the columns that are left alone."""

    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, dataset: Dataset, train_nodes: Tensor) -> FeatureScaler:
        features_NF = dataset.batch.features[train_nodes].double()
        chosen = dataset.continuous.to(features_NF.device)
        mean = features_NF.mean(0)
        std = (features_NF - mean).square().mean(0).sqrt()
        # A column that never changes carries nothing: centring it is enough.
        std = torch.where(std > 1e-12 * (1 + mean.abs()), std, 1.0)
        return cls(
            mean=torch.where(chosen, mean, 0.0).float(), std=torch.where(chosen, std, 1.0).float()
        )

    @classmethod
    def of_words(cls, features_NF: Tensor) -> FeatureScaler:
        """One factor for all columns: what is not there stays zero."""
        columns = features_NF.shape[1]
        size = features_NF.sum(dim=1, dtype=torch.float64).mean() / WORDS
        return cls(mean=torch.zeros(columns), std=size.float().expand(columns).clone())

    def apply(self, batch: GraphBatch) -> GraphBatch:
        x = batch.features
        return batch.with_features((x - self.mean.to(x)) / self.std.to(x))

    def to_dict(self) -> dict[str, list[float]]:
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> FeatureScaler:
        return cls(
            mean=torch.tensor(raw["mean"], dtype=torch.float32),
            std=torch.tensor(raw["std"], dtype=torch.float32),
        )
