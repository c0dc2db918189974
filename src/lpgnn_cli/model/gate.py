"""Products with what a node's label says.

A sum of linear maps and ReLUs can form the product of two numbers, but needs many units and many
examples for it. Two things are products: to bind what stands on one node (this key has this value),
so that sums over nodes keep it together, and to select by what a node asks for.

Shapes: N nodes, L columns of labels, R factors.
"""

from __future__ import annotations

from torch import Tensor, nn

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.mlp import UnitNorm, linear_layer
from lpgnn_cli.ops import DistinctRows


class LabelGate(nn.Module):
    """One factor per column of what it multiplies, linear in the direction of the label.

    The direction, so that factors start with a size of 1 whatever labels there are.
    """

    def __init__(self, labels: int, size: int, bias: bool = True) -> None:
        super().__init__()
        self.direction = UnitNorm()
        self.linear = linear_layer(labels, size, bias=bias)
        nn.init.normal_(self.linear.weight)
        if bias:
            nn.init.zeros_(self.linear.bias)

    def forward(self, label_NL: Tensor) -> Tensor:
        known_NL = self.direction(label_NL) if label_NL.shape[1] else label_NL
        factors_NR: Tensor = self.linear(known_NL)
        return factors_NR

    def of_nodes(self, batch: GraphBatch) -> Tensor:
        """By the features of the nodes whose states are looked for."""
        labels = batch.own_of(batch.as_distinct(batch.features))
        if isinstance(labels, DistinctRows):
            return labels.gather(self.forward(labels.rows))
        return self.forward(labels)
