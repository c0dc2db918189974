"""Graph filters over several hops: `selection` and `median`.

Arc labels enter as their mean over the arcs into a node, beside its own state and label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import FilterConfig
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.transitions.base import BlockMLP, Sizes, Transition, aggregator
from lpgnn_cli.model.transitions.shift import GraphShift
from lpgnn_cli.ops import Neighbourhood, segment_mean

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch


class _Filter(Transition):
    """h on every node, ahead of the filter itself."""

    tells_labels_apart = False

    def __init__(self, config: FilterConfig, sizes: Sizes) -> None:
        super().__init__()
        self.taps = config.taps
        self.arc = sizes.arc
        self.h = BlockMLP(config, [sizes.state, sizes.label, sizes.arc, sizes.arc], sizes.out)
        self.output = activation(config.output_activation)

    def signal(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        arcs = batch.arcs
        result: Tensor = self.h(
            state_NS,
            label_NL,
            segment_mean(batch.arc_out[:, : self.arc], arcs.ptr, arcs.target),
            segment_mean(batch.arc_in[:, : self.arc], arcs.ptr, arcs.target),
        )
        return result

    def state_weights(self) -> list[Tensor]:
        return [self.h.blocks()[0]]


@aggregator("selection", FilterConfig)
class Selection(_Filter):
    """f_a = sigma(Σ_k S^k h_k(z)), a linear shift-invariant filter; h_k share hidden layers."""

    def __init__(self, config: FilterConfig, sizes: Sizes) -> None:
        super().__init__(config, sizes._replace(out=config.taps * sizes.out))

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        shift = GraphShift(batch.arcs, state_NS.dtype)
        *nearer, total_NO = self.signal(state_NS, label_NL, batch).chunk(self.taps, dim=1)
        # Horner's rule: every tap costs one shift.
        for tap_NO in reversed(nearer):
            total_NO = shift(total_NO) + tap_NO
        result: Tensor = self.output(total_NO)
        return result

    def state_gain(self) -> float | None:
        return self.h.gain_of([0], outputs=self.taps)

    def start_near_identity(self) -> None:
        self.h.start_near_identity(0, outputs=self.taps, output=min(1, self.taps - 1))


@aggregator("median", FilterConfig)
class Median(_Filter):
    """f_a = sigma(Σ_k w_k ⊙ median of h(z) over all nodes at most k hops away, v among them)."""

    def __init__(self, config: FilterConfig, sizes: Sizes) -> None:
        super().__init__(config, sizes)
        self.tap_weight_TO = nn.Parameter(torch.full((config.taps, sizes.out), 1 / config.taps))

    def forward(self, state_NS: Tensor, label_NL: Tensor, batch: GraphBatch) -> Tensor:
        signal_NO = self.signal(state_NS, label_NL, batch)
        total_NO = self.tap_weight_TO[0] * signal_NO
        for hops in range(1, self.taps):
            near = Neighbourhood.of(batch.arcs, hops)
            total_NO = total_NO + self.tap_weight_TO[hops] * near.median(signal_NO)
        result: Tensor = self.output(total_NO)
        return result

    def state_gain(self) -> float | None:
        # A median moves no further than the element that moves furthest, in the maximum norm.
        signal = self.h.gain_of([0], order=torch.inf)
        return (
            None
            if signal is None
            else signal * float(self.tap_weight_TO.detach().abs().sum(dim=0).max())
        )

    def start_near_identity(self) -> None:
        self.h.start_near_identity(0, order=torch.inf)
