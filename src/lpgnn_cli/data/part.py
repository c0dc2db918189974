"""Some graphs of a dataset, and which of their targets count."""

from __future__ import annotations

from collections.abc import Iterator
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

    def spans(self, size: int) -> Iterator[Part]:
        """So many graphs that lie side by side after others."""
        first = 0
        for batch in self.batch.spans(size):
            last = first + batch.num_nodes
            yield replace(self, batch=batch, scored=self._scored_between(first, last))
            first = last

    def _scored_between(self, first: int, stop: int) -> Tensor | None:
        """The nodes of a range that are scored, counted from its start."""
        if self.scored is None:
            return None
        bounds = torch.tensor([first, stop], device=self._ordered.device)
        begin, end = torch.searchsorted(self._ordered, bounds).tolist()
        return self._ordered[begin:end] - first

    def within(self, block: Block) -> Part:
        """The piece of it that lies in a block of its batch."""
        inside = self._scored_between(block.first, block.stop)
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
