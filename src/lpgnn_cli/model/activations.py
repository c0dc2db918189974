"""Activation functions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function


class Tanh(nn.Module):
    """tanh; in single precision on the CPU as 2 sigmoid(2x) - 1.

    There torch's own takes 31 ms for ten million numbers on one thread and this form 15 ms, which
    makes a training epoch on IMDB-BINARY a seventh shorter. It is exact to 2e-7, about the spacing
    of single-precision numbers at 1. Elsewhere torch's own is the better choice.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cpu and x.dtype is torch.float32:
            return _tanh_by_sigmoid(x)
        return x.tanh()


class _TanhBySigmoid(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = (2 * x).sigmoid_().mul_(2).sub_(1)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (result,) = ctx.saved_tensors
        # Itself differentiable, so that second derivatives work.
        derivative: Tensor = torch.ops.aten.tanh_backward(gradients[0], result)
        return derivative


_tanh_by_sigmoid: Callable[[Tensor], Tensor] = _TanhBySigmoid.apply

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": Tanh,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "elu": nn.ELU,
    "leaky_relu": nn.LeakyReLU,
    "gelu": nn.GELU,
    "identity": nn.Identity,
}


# The steepest slope, where it is not 1.
LIPSCHITZ = {"sigmoid": 0.25, "gelu": 1.13}


def activation(name: str) -> nn.Module:
    return _ACTIVATIONS[name]()
