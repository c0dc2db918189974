"""Linear operations that know their adjoint, and so can be differentiated as often as one likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

LinearMap = Callable[[Tensor], Tensor]


def wanted_gradients(ctx: Any) -> list[bool]:
    """Of the tensors that a function was applied to, in the pass that is under way.

    torch skips whole functions that lead to nothing which was asked for. What a function computes
    for one of its inputs alone, such as the gradient of weights, it has to skip by itself.
    """
    return [node is not None and _is_reached(node) for node, _ in ctx.next_functions]


def _is_reached(node: Any) -> bool:
    try:
        reached: bool = torch._C._will_engine_execute_node(node)
    except RuntimeError:
        # What `autograd.grad` looks for.
        return True
    return reached


class _Linear(Function):
    """y = M x, with the gradient Mᵀ y' computed by `adjoint`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, apply: LinearMap, adjoint: LinearMap) -> Tensor:
        ctx.operation, ctx.adjoint = apply, adjoint
        return apply(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return linear(gradients[0], ctx.adjoint, ctx.operation), None, None


_apply: Callable[[Tensor, LinearMap, LinearMap], Tensor] = _Linear.apply


def linear(x: Tensor, apply: LinearMap, adjoint: LinearMap) -> Tensor:
    """apply(x), whose gradient is adjoint(gradient)."""
    if not (torch.is_grad_enabled() and x.requires_grad):
        return apply(x)
    return _apply(x, apply, adjoint)
