"""Which nodes are trained on, validate and are tested, as the authors of a dataset publish it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lpgnn_cli.data.batch import hash_tensor

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Masks:
    """(S, N) bool each: S splits of N nodes; nodes of no part are left out of a split."""

    train: Tensor
    val: Tensor
    test: Tensor

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], nodes: int) -> Masks | None:
        """`train_masks`, `val_masks` and `test_masks`; None without them, ValueError if bad."""
        names = [f"{part}_masks" for part in PARTS]
        missing = [name for name in names if name not in arrays]
        if len(missing) == len(names):
            return None
        if missing:
            raise ValueError(f"it has masks, but lacks {' and '.join(missing)}")
        masks = cls(*(_matrix(np.asarray(arrays[name]), name, nodes) for name in names))
        masks.validate()
        return masks

    def to_arrays(self) -> dict[str, Any]:
        return {f"{part}_masks": getattr(self, part).cpu().numpy() for part in PARTS}

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for part in PARTS:
            hash_tensor(digest, part, getattr(self, part))
        return digest.hexdigest()

    def validate(self) -> None:
        """Raise ValueError unless the parts of every split are there and do not overlap."""
        counts = {part: getattr(self, part).shape[0] for part in PARTS}
        if len(set(counts.values())) != 1:
            found = ", ".join(f"{count} of {part}" for part, count in counts.items())
            raise ValueError(f"the masks must be as many for each part: there are {found}")
        if counts["train"] == 0:
            raise ValueError("the masks have no split: at least one is needed")
        for part in PARTS:
            empty = (~getattr(self, part).any(dim=1)).nonzero().flatten().tolist()
            if empty:
                raise ValueError(f"{part}_masks has no node in split {empty[0]}")
        times = self.train.int() + self.val.int() + self.test.int()
        if int(times.max()) > 1:
            split, node = (times > 1).nonzero()[0].tolist()
            raise ValueError(
                f"node {node} is in more than one part of split {split}; train, val and test must "
                "not overlap"
            )


def _matrix(mask: Any, name: str, nodes: int) -> Tensor:
    if mask.dtype != np.bool_:
        raise ValueError(f"{name} must be true or false for each node, not of type {mask.dtype}")
    if mask.ndim == 1:
        mask = mask[None]
    if mask.ndim != 2 or mask.shape[1] != nodes:
        raise ValueError(
            f"{name} has the shape {mask.shape}: it must have one row per split and one column for "
            f"each of the {nodes} nodes"
        )
    return torch.from_numpy(mask.copy())
