"""How much a matrix stretches a vector at most."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def operator_norm(weight: Tensor, order: float = 2) -> Tensor:
    """The operator norm, in the Euclidean or the maximum norm (`order` inf)."""
    if weight.numel() == 0:
        return weight.new_zeros(())
    try:
        norm: Tensor = torch.linalg.matrix_norm(weight, ord=order)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        # The singular values of a diverged weight cannot be computed.
        return weight.new_tensor(torch.inf)
    return norm.nan_to_num(nan=torch.inf, posinf=torch.inf)


@torch.no_grad()
def operator_norms(weights: Sequence[Tensor], order: float = 2) -> list[float]:
    """Those of several matrices: Euclidean ones at once, where all are of one size but for which
    side is the longer. Plain numbers, since small data would wait for every operation on tensors
    of one number that a bound is made by."""
    if weights[0].is_meta:
        return [math.inf] * len(weights)
    wide = [weight if weight.shape[0] <= weight.shape[1] else weight.t() for weight in weights]
    if order == 2 and wide[0].numel() > 0 and len({weight.shape for weight in wide}) == 1:
        with suppress(torch.linalg.LinAlgError):  # type: ignore[attr-defined]
            norms: list[float] = torch.linalg.svdvals(torch.stack(wide))[:, 0].tolist()
            if all(map(math.isfinite, norms)):
                return norms
    return [float(operator_norm(weight, order)) for weight in weights]


def norm_of_both(a: Tensor, b: Tensor) -> Tensor:
    """The larger of |A + B| and |A - B| in the Euclidean norm; it can be differentiated once."""
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad) and _have_squares(a, b):
        return _larger_norm(a, b)
    return torch.stack([operator_norm(a + b), operator_norm(a - b)]).max()


def _have_squares(a: Tensor, b: Tensor) -> bool:
    """Whether they are neither zero nor so large, or small, that their squares are no numbers."""
    if a.numel() == 0:
        return False
    limit: float = torch.finfo(a.dtype).max ** 0.25
    return 1 / limit < float(torch.maximum(a.detach().abs(), b.detach().abs()).max()) < limit


class _LargerNorm(Function):
    """The largest singular value; its gradient is the product of the two vectors that belong to it.

    They are found by the eigenvectors of WᵀW. torch's own norm computes all singular vectors, of
    both matrices, and differentiates by all of them: three times as long.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        both = torch.stack([a + b, a - b])
        values, vectors = torch.linalg.eigh(both.mT @ both)
        ctx.which = int(values[:, -1].argmax())
        right = vectors[ctx.which, :, -1]
        left = both[ctx.which].mv(right)
        norm: Tensor = left.norm()
        ctx.save_for_backward(left / norm, right)
        return norm

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        left, right = ctx.saved_tensors
        gradient = torch.outer(gradients[0] * left, right)
        return gradient, -gradient if ctx.which else gradient


_larger_norm: Callable[[Tensor, Tensor], Tensor] = _LargerNorm.apply
