"""From a dataset's config to its graphs."""

from __future__ import annotations

from dataclasses import replace

import lpgnn_cli.data.datasets  # noqa: F401  adds lpgnn's own
from lpgnn_cli.config.dataset import DATASETS, DatasetConfig
from lpgnn_cli.data.asked import Asked
from lpgnn_cli.data.dataset import Dataset, Request
from lpgnn_cli.data.vocabulary import Vocabulary


def load_dataset(
    config: DatasetConfig,
    data_root: str | None,
    seed: int,
    vocabulary: Vocabulary | None = None,
    asked: Asked | None = None,
) -> Dataset:
    """Load or generate a dataset; UserError says in one sentence why it is unavailable.

    With the `vocabulary` of a trained network, labels get the columns that it knows them by; what
    it is `asked` for need not be in the data.
    """
    load = DATASETS.implementation(config)
    request = Request(seed, data_root, vocabulary, targets=asked is None)
    dataset: Dataset = load(config, request)
    if asked is not None:
        dataset = replace(dataset, batch=asked.blank(dataset.batch))
    return with_neighbours(config, dataset)


def with_neighbours(config: DatasetConfig, dataset: Dataset) -> Dataset:
    """With arcs in both directions where children count as neighbours, too."""
    if config.neighbours == "both":
        return replace(dataset, batch=dataset.batch.both_ways())
    return dataset
