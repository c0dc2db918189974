"""Whether neighbours tend to have the same class, as far as the labels of training tell."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch

# Of graphs that people study, the adjusted homophily is above 0.5 where neighbours are alike
# (papers, authors, products bought together), and below 0.2 where they are not.
BORDER = 0.4
# Standard deviations: a handful of pairs may differ by chance.
CERTAIN = 2.3


@dataclass(frozen=True)
class Alikeness:
    """Of pairs of neighbours that are both labelled."""

    pairs: int
    alike: int
    # The share of alike pairs if neighbours were drawn by how many of them a class has.
    chance: float

    @classmethod
    def of(cls, batch: GraphBatch, labelled: Tensor) -> Alikeness:
        """Only the classes of these nodes are looked at."""
        known = torch.zeros(batch.num_nodes, dtype=torch.bool)
        known[labelled] = True
        source, target = batch.arcs.source, batch.arcs.target
        counts = known[source] & known[target] & (source != target)
        ends = torch.stack([source[counts], target[counts]]).sort(dim=0).values
        classes = batch.targets[torch.unique(ends, dim=1)]
        pairs = classes.shape[1]
        shares = torch.bincount(classes.flatten(), minlength=1).double() / max(1, 2 * pairs)
        return cls(pairs, int((classes[0] == classes[1]).sum()), float(shares.square().sum()))

    @property
    def adjusted(self) -> float:
        """Adjusted homophily (Platonov et al. 2023): 1 if all are alike, 0 if as by chance."""
        if not self.pairs or self.chance >= 1:
            return math.nan
        return (self.alike / self.pairs - self.chance) / (1 - self.chance)

    @property
    def is_refuted(self) -> bool:
        """Whether there are clearly fewer alike pairs than where neighbours are alike.

        Few labels leave few pairs, or none, which prove nothing.
        """
        share = self.chance + BORDER * (1 - self.chance)
        spread = math.sqrt(self.pairs * share * (1 - share))
        return self.alike < self.pairs * share - CERTAIN * spread
