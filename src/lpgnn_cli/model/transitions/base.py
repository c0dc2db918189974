"""What every transition function f_a is.

Shapes in this package: N nodes, A arcs, S state size, L label size, D arc label size, H hidden
size, O output size. z = [x, l] is the state and the label of a node side by side, and the message
along an arc from u to v is m_u = [x_u, l_u, l_(v,u), l_(u,v)].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import AGGREGATORS, AggregatorConfig
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.activations import LIPSCHITZ
from lpgnn_cli.model.mlp import MLP
from lpgnn_cli.model.operator_norm import operator_norms
from lpgnn_cli.ops import SparseRows, add_products

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


class Sizes(NamedTuple):
    """How many columns come in, each of them possibly 0, and how many go out."""

    state: int
    label: int
    arc: int
    out: int
    # Whether the labels of neighbours and arcs enter, beside the node's own label.
    own_label_only: bool = False

    @property
    def neighbour_label(self) -> int:
        return 0 if self.own_label_only else self.label


class Transition(nn.Module, ABC):
    """f_a: from the states and labels of all nodes to the states they should have.

    Where a bound on the gain is kept, messages of states come normalised and the weights on x
    stay small enough for it. Labels pass as they are: their way is free.
    """

    # Whether a node's own label can enter without those of its neighbours.
    tells_labels_apart: ClassVar[bool] = True
    # Whether it can be computed for some nodes out of these and their neighbours alone: what is a
    # node's own is then taken by `batch.own`.
    of_some_nodes: ClassVar[bool] = False
    # The bound on the gain that is kept; None: no bound, and messages of states are not normalised.
    gain: float | None = None
    # Whether all arcs of the graphs it was made for go both ways: some bounds are tighter then, and
    # where they stand inside f_a, it is another function.
    symmetric: bool = False

    @abstractmethod
    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        """(N, O)"""

    @abstractmethod
    def state_weights(self) -> list[Tensor]:
        """The blocks of weights, each (·, S), that act on x: views into the parameters."""

    def state_gain(self) -> float | None:
        """What the weights allow the gain to be where messages of states are normalised.

        It grows in proportion to the weights on x. None where nothing can be proved.
        """
        return None

    def start_near_identity(self) -> None:
        """Let what a neighbour sends arrive as it is, up to its size, so that it travels on."""
        return None

    @torch.no_grad()
    def keep_gain(self, gain: float) -> None:
        """Keep this bound from now on; it is for new weights."""
        self.gain = gain
        self.start_near_identity()
        self.project()

    @torch.no_grad()
    def project(self) -> None:
        """Shrink the weights on x until the gain is within its bound."""
        allowed = self.state_gain()
        if self.gain is None or allowed is None:
            return
        # Diverged weights have no norm; they are left to who watches the Lagrangian.
        if self.gain < allowed < math.inf:
            for weight in self.state_weights():
                weight.mul_(self.gain / allowed)

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

    def __init__(
        self, config: AggregatorConfig, columns: Sequence[int], out_size: int, bias: bool = True
    ) -> None:
        super().__init__(
            [sum(columns), *config.hidden, out_size],
            activation=config.activation,
            dropout=config.dropout,
            norm=config.norm,
            bias=bias,
        )
        self.columns = list(columns)
        self.is_lipschitz = config.norm == "none"
        self.slope = LIPSCHITZ.get(config.activation, 1.0) ** len(config.hidden)
        self.slope *= LIPSCHITZ.get(config.output_activation, 1.0)

    def blocks(self) -> list[Tensor]:
        """The first weight, split into the columns of each block."""
        return list(self.first.weight.split_with_sizes(self.columns, dim=1))

    def gain_of(self, blocks: Sequence[int], outputs: int = 1, order: float = 2) -> float | None:
        """An upper bound of the gain from blocks of columns to the output, in a norm by order.

        `outputs` are parts of the output, one below the other, that are added up later. A
        normalisation inside has no bound.
        """
        if not self.is_lipschitz:
            return None
        columns = self.blocks()
        first, inner = [columns[block] for block in blocks], self.weights[1:-1]
        last = self.last.weight.chunk(outputs) if len(self.layers) > 1 else ()
        norms = iter(operator_norms([*first, *inner, *last], order))
        gain = self.slope * sum(islice(norms, len(first))) * math.prod(islice(norms, len(inner)))
        return gain * sum(norms) if last else gain

    def start_near_identity(
        self, block: int, outputs: int = 1, output: int = 0, order: float = 2
    ) -> None:
        """Make the way from one block to (one part of) the output a projection, at small values.

        All weights after the first are orthogonal then, and those of the block their transpose; in
        the maximum norm they are parts of the identity, which alone has norm 1 there, too.
        """
        start = nn.init.orthogonal_ if order == 2 else nn.init.eye_
        weight = self.blocks()[block]
        if len(self.weights) == 1:
            weight.zero_()
            nn.init.eye_(weight.chunk(outputs)[output])
            return
        for later in self.weights[1:]:
            start(later)
        way = self.last.weight.chunk(outputs)[output]
        for later in reversed(self.weights[1:-1]):
            way = way @ later
        weight.copy_(way.t()[:, : weight.shape[1]])

    def forward(self, *blocks: Tensor | SparseRows) -> Tensor:
        """Of every block, or of all of them in one."""
        weights = [self.first.weight] if len(blocks) == 1 else self.blocks()
        return self.after_first(add_products(blocks, weights, self.first.bias))
