"""Graphs whose targets nobody knows: what a trained network is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from lpgnn_cli.data.batch import GraphBatch, TargetLevel
from lpgnn_cli.metrics import CLASSES, LABELS


@dataclass(frozen=True)
class Asked:
    """The targets that a network has learnt to give."""

    level: TargetLevel
    task: str
    classes: int

    def blank(self, batch: GraphBatch) -> GraphBatch:
        """The same graphs with targets of this kind, all zero: nobody looks at them."""
        size = batch.num_graphs if self.level == "graph" else batch.num_nodes
        if self.task == CLASSES:
            targets = torch.zeros(size, dtype=torch.int64)
        else:
            dtype = torch.int64 if self.task == LABELS else torch.float32
            targets = torch.zeros(size, self.classes, dtype=dtype)
        return batch.with_targets(targets, self.level, self.classes)


def without_targets(num_graphs: int) -> dict[str, Any]:
    """What a batch of graphs without targets has in their place, until `blank` knows better."""
    return {
        "targets": torch.zeros(num_graphs, dtype=torch.int64),
        "target_level": "graph",
        "num_classes": 1,
    }
