"""Datasets that many runs of one process share are loaded once."""

from __future__ import annotations

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.loading import load_dataset

KEPT = 4

_loaded: dict[tuple[str, str | None, int | None], Dataset] = {}


def load_dataset_once(config: DatasetConfig, data_root: str | None, seed: int) -> Dataset:
    """What `load_dataset` gives, from memory where it is one of the last few; for reading only."""
    for key in ((repr(config), data_root, None), (repr(config), data_root, seed)):
        if key in _loaded:
            return _loaded[key]
    dataset = load_dataset(config, data_root, seed)
    while len(_loaded) >= KEPT:
        _loaded.pop(next(iter(_loaded)))
    _loaded[repr(config), data_root, seed if dataset.seeded else None] = dataset
    return dataset
