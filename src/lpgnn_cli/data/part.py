"""Some graphs of a dataset, and which of their targets count."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.blocks import Block
from lpgnn_cli.data.targets import Judging
from lpgnn_cli.metrics import CLASSES


@dataclass(frozen=True, eq=False)
class Part:
    """Training, validation or test graphs; all of their targets are scored, or those of some
    nodes."""

    batch: GraphBatch
    scored: Tensor | None = None
    judging: Judging = field(default_factory=Judging)
    # Where this is a piece whose loss is to be its share of that of a whole: what the targets of
    # the whole weigh together.
    out_of: float | None = None

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

    def within(self, block: Block) -> Part:
        """The piece of it that lies in a block of its batch."""
        if self.scored is None:
            return replace(self, batch=block, out_of=self.weight)
        ordered = self._ordered
        bounds = torch.tensor([block.first, block.stop], device=ordered.device)
        first, stop = torch.searchsorted(ordered, bounds).tolist()
        inside = ordered[first:stop] - block.first
        return replace(self, batch=block, scored=inside, out_of=self.weight)

    @cached_property
    def _ordered(self) -> Tensor:
        assert self.scored is not None
        return self.scored.sort().values

    @cached_property
    def weight(self) -> float:
        """What a mean over its targets divides by: their number, or their classes' weights."""
        weights = self.judging.weights
        if weights is None or self.batch.task != CLASSES:
            return float(len(self.targets))
        return float(weights[self.targets].sum())
