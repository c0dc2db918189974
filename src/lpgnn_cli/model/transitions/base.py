"""What every transition function f_a is.

Shapes in this package: N nodes, A arcs, S state size, L label size, D arc label size, H hidden
size, O output size. z = [x, l] is the state and the label of a node side by side, and the message
along an arc from u to v is m_u = [x_u, l_u, l_(v,u), l_(u,v)].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import AGGREGATORS, AggregatorConfig
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.mlp import MLP
from lpgnn_cli.ops import DistinctRows

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


class Sizes(NamedTuple):
    """How many columns come in, each of them possibly 0, and how many go out."""

    state: int
    label: int
    arc: int
    out: int


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


T = TypeVar("T", bound=type[Transition])


def aggregator(name: str, settings: type[AggregatorConfig] = AggregatorConfig) -> Callable[[T], T]:
    """Class decorator: `aggregator=<name>` builds this transition as `cls(config, sizes)`."""

    def add(transition: T) -> T:
        if not (isinstance(transition, type) and issubclass(transition, Transition)):
            raise UserError(f"aggregator={name} is not a Transition.")
        AGGREGATORS.add(name, AggregatorConfig, settings, transition)
        return transition

    return add


class BlockMLP(MLP):
    """The MLP h of a transition, on blocks of columns side by side that are never concatenated."""

    def __init__(self, config: AggregatorConfig, columns: Sequence[int], out_size: int) -> None:
        super().__init__(
            [sum(columns), *config.hidden, out_size],
            activation=config.activation,
            dropout=config.dropout,
            norm=config.norm,
        )
        self.columns = list(columns)

    def blocks(self) -> list[Tensor]:
        """The first weight, split into the columns of each block."""
        return list(self.first.weight.split_with_sizes(self.columns, dim=1))

    def forward(self, *blocks: Tensor) -> Tensor:
        return self.after_first(add_products(blocks, self.blocks(), self.first.bias))


def add_products(
    blocks: Sequence[Tensor | DistinctRows],
    weights: Sequence[Tensor],
    start: Tensor | None = None,
) -> Tensor:
    """start (say, a bias) + `linear(cat(blocks), cat(weights))`, without the concatenations."""
    total = start
    # Distinct rows first: products of the others are then added to what was gathered in one go.
    pairs = sorted(zip(blocks, weights, strict=True), key=lambda pair: isinstance(pair[0], Tensor))
    for block, weight in pairs:
        if isinstance(block, DistinctRows):
            if total is None or total.dim() == 1:
                total = block.gather(add_products([block.rows], [weight], total))
            else:
                total = total + block.gather(block.rows @ weight.t())
        elif block.shape[1] > 0:
            total = block @ weight.t() if total is None else torch.addmm(total, block, weight.t())
    if total is None:
        return weights[0].new_zeros(len(blocks[0]), weights[0].shape[0])
    return total if total.dim() == 2 else total.expand(len(blocks[0]), -1)
