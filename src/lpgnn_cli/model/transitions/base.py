"""What every transition function f_a is.

Shapes in this package: N nodes, A arcs, S state size, L label size, D arc label size, H hidden
size, O output size. z = [x, l] is the state and the label of a node side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from lpgnn_cli.config.model import AggregatorConfig
from lpgnn_cli.model.mlp import MLP

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


class Transition(nn.Module, ABC):
    """f_a: from the states and labels of all nodes to the states they should have."""

    @abstractmethod
    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        """(N, O)"""

    @abstractmethod
    def state_weights(self) -> list[Tensor]:
        """The blocks of weights, each (·, S), that act on x: views into the parameters."""

    def __call__(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        result: Tensor = super().__call__(state_NS, label_NL, batch)
        return result


def build_mlp(config: AggregatorConfig, in_size: int, out_size: int) -> MLP:
    """The MLP h of a transition; its output activation is left to the transition."""
    return MLP(
        [in_size, *config.hidden, out_size],
        activation=config.activation,
        dropout=config.dropout,
        norm=config.norm,
    )


def blockwise_linear(
    weight: Tensor, bias: Tensor | None, blocks: list[Tensor], columns: list[int]
) -> Tensor:
    """`linear(cat(blocks), weight, bias)` without the concatenation; `columns` are block widths."""
    result: Tensor | None = bias
    for block, part in zip(blocks, weight.split_with_sizes(columns, dim=1), strict=True):
        if block.shape[1] == 0:
            continue
        if result is bias:
            result = functional.linear(block, part, bias)
        else:
            assert result is not None
            result = torch.addmm(result, block, part.t())
    if result is None or result is bias:
        rows = blocks[0].new_zeros(blocks[0].shape[0], weight.shape[0])
        return rows if bias is None else rows + bias
    return result
