"""Gradients by node labels through states that are a fixed point, x = f_a(x, labels)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lpgnn_cli.propagation.base import Pullback

# Hops that are followed, unless what they bring falls below this share of the whole before.
HOPS, NEGLIGIBLE = 1000, 1e-5
# What grows to so many times its start has no end: the fixed point repels.
WITHOUT_END = 1e4


def through_fixed_point(
    x: Sequence[Tensor], transits: Sequence[Tensor], labels: Tensor, scores: Tensor
) -> Pullback:
    """dscores/dlabels = direct + sum over k of  dscores/dx J^k df_a/dlabels,  hop by hop.

    Infinite where the sum has no end.
    """

    def pull(weights: Tensor) -> Tensor:
        *adjoint, total = _pulled([scores], [*x, labels], [weights])
        start = 0.0
        for _ in range(HOPS):
            *adjoint, arrived = _pulled(transits, [*x, labels], adjoint)
            total = total + arrived
            size, whole = float(arrived.abs().max()), float(total.abs().max())
            start = start or whole
            if not size <= WITHOUT_END * start:
                return torch.full_like(total, torch.inf)
            if size <= NEGLIGIBLE * whole:
                break
        return total

    return pull


def _pulled(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], weights: Sequence[Tensor]
) -> list[Tensor]:
    """Vector-Jacobian products; zero for what an output does not depend on."""
    live = [(o, w) for o, w in zip(outputs, weights, strict=True) if o.requires_grad]
    # Of sums: products with given vectors make torch import sympy, for longer than this takes.
    gradients = torch.autograd.grad(
        [(o * w).sum() for o, w in live], inputs, retain_graph=True, allow_unused=True
    )
    return [
        torch.zeros_like(variable) if gradient is None else gradient
        for variable, gradient in zip(inputs, gradients, strict=True)
    ]
