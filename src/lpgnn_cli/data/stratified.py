"""Folds with the same share of every class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


def stratified_folds(strata: Indices, folds: int, seed: int) -> Indices:
    """The fold that each graph is tested in: those of scikit-learn's StratifiedKFold, shuffled, by
    the same draws, without a second of importing it."""
    _, first, number = np.unique(strata, return_index=True, return_inverse=True)
    # Strata in the order in which they first appear.
    rank = np.argsort(np.argsort(first))
    stratum = rank[number]
    in_order = np.sort(stratum)
    random = np.random.RandomState(seed)
    result = np.empty(strata.size, dtype=np.int64)
    for k in range(first.size):
        counts = [np.count_nonzero(in_order[fold::folds] == k) for fold in range(folds)]
        dealt = np.repeat(np.arange(folds), counts)
        random.shuffle(dealt)
        result[stratum == k] = dealt
    return result
