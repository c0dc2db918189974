"""Datasets that many runs of one process share are loaded once."""

from __future__ import annotations

import os

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.loading import load_dataset

KEPT = 4

Stamp = tuple[int, int] | None

_loaded: dict[tuple[str, str | None, Stamp, int | None], Dataset] = {}


def stamp(config: DatasetConfig) -> Stamp:
    """Of the file that a dataset is read from, where it names one: a notebook may rewrite it."""
    path = getattr(config, "path", None)
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def load_dataset_once(config: DatasetConfig, data_root: str | None, seed: int) -> Dataset:
    """What `load_dataset` gives, from memory where it is one of the last few; for reading only."""
    source = (repr(config), data_root, stamp(config))
    for key in ((*source, None), (*source, seed)):
        if key in _loaded:
            return _loaded[key]
    dataset = load_dataset(config, data_root, seed)
    while len(_loaded) >= KEPT:
        _loaded.pop(next(iter(_loaded)))
    _loaded[*source, seed if dataset.seeded else None] = dataset
    return dataset
