"""Some graphs of a dataset, and which of their targets count."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.targets import Judging


@dataclass(frozen=True, eq=False)
class Part:
    """Training, validation or test graphs; all of their targets are scored, or those of some
    nodes."""

    batch: GraphBatch
    scored: Tensor | None = None
    judging: Judging = field(default_factory=Judging)

    def select(self, rows: Tensor) -> Tensor:
        """Of one row per target of the batch, those that are scored."""
        return rows if self.scored is None else rows[self.scored]

    @property
    def targets(self) -> Tensor:
        return self.select(self.batch.targets)

    def subset(self, graphs: Tensor) -> Part:
        """The graphs with these indices, in this order."""
        batch = self.batch.subset(graphs)
        if self.scored is None:
            return replace(self, batch=batch)
        counts = torch.zeros(self.batch.num_nodes, dtype=torch.bool, device=self.scored.device)
        counts[self.scored] = True
        scored = counts[self.batch.nodes_of(graphs)].nonzero().squeeze(1)
        return replace(self, batch=batch, scored=scored)
