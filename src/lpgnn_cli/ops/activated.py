"""Sums over arcs of an activation: the one place that decides between machine code and torch.

`LPGNN_ARC_KERNEL=plain|compiled` forces one of them, here and in `products`. Left to itself, the
compiled kernel does all that it can: single and double precision on the CPU, and the activations
that it knows.

Shapes: N nodes, A arcs, K kinds of arcs, H columns.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from lpgnn_cli.errors import UserError
from lpgnn_cli.ops.activations import ACTIVATIONS
from lpgnn_cli.ops.arcs import Arcs
from lpgnn_cli.ops.linear import wanted_gradients
from lpgnn_cli.ops.messages import gather_source, gather_target, sum_incoming

ENVIRONMENT_VARIABLE = "LPGNN_ARC_KERNEL"
PLAIN, COMPILED = "plain", "compiled"
ARC_KERNELS = "lpgnn_cli.ops.arc_kernels"


def arc_kernel() -> tuple[str, str]:
    """The name of what sums activations over arcs on a CPU, and why it does."""
    forced = _forced()
    if forced is not None:
        return forced, f"{ENVIRONMENT_VARIABLE} is set"
    if isinstance(_load(ARC_KERNELS), str):
        return PLAIN, f"llvmlite does not load here: {_load(ARC_KERNELS)}"
    return COMPILED, "llvmlite is installed"


def sum_activated(
    source_NH: Tensor,
    target_NH: Tensor,
    arcs: Arcs,
    activation: str,
    *,
    arc_KH: Tensor | None = None,
    kind_A: Tensor | None = None,
    weight_A: Tensor | None = None,
) -> Tensor:
    """(N, H): Σ over the arcs a = (u, v) into v of w_a act(source[u] + target[v] + arc[a]).

    `arc_KH` has one row per arc, or, with `kind_A`, one per kind of arc. Gradients of first order
    store nothing of the size of the arcs; those of second order go through plain operations.
    Weights are constants.
    """
    if not _fits(source_NH, target_NH, activation, weight_A):
        return _plain(source_NH, target_NH, arc_KH, arcs, activation, kind_A, weight_A)
    kernels = compiled_module()
    assert kernels is not None
    arc_sum = kernels.ArcSum(arcs, activation, kind_A, weight_A)
    inputs = (source_NH, target_NH, arc_KH)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs):
        return _apply(*inputs, arc_sum)
    result: Tensor = arc_sum.forward(*inputs, with_slope=False)[0]
    return result


class _SumActivated(Function):
    @staticmethod
    def forward(ctx: Any, p: Tensor, q: Tensor, r: Tensor | None, arc_sum: Any) -> Tensor:
        result: Tensor
        result, slope = arc_sum.forward(p, q, r, with_slope=ctx.needs_input_grad[1])
        ctx.arc_sum = arc_sum
        ctx.save_for_backward(p, q, r, slope)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        p, q, r, slope = ctx.saved_tensors
        (dy,) = gradients
        wanted = [*wanted_gradients(ctx), False][:3]
        if torch.is_grad_enabled():
            dp, dq, dr = _differentiable_gradients(ctx.arc_sum, (p, q, r), wanted, dy)
            return dp, dq, dr, None
        dp = dr = None
        if wanted[0] or wanted[2]:
            dp, dr = ctx.arc_sum.backward(p, q, r, dy, with_rows=wanted[2])
        return dp, dy * slope if wanted[1] else None, dr, None


_apply: Callable[..., Tensor] = _SumActivated.apply


def _differentiable_gradients(
    arc_sum: Any, inputs: tuple[Tensor, Tensor, Tensor | None], wanted: Any, dy: Tensor
) -> list[Tensor | None]:
    """The gradients as functions of the inputs and of dy, for derivatives of second order."""
    chosen = [x for x, asked in zip(inputs, wanted, strict=True) if asked and x is not None]
    y = _plain(*inputs, arc_sum.arcs, arc_sum.activation, arc_sum.kind, arc_sum.weight)
    found = iter(torch.autograd.grad(y, chosen, dy, create_graph=True))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def _plain(
    source_NH: Tensor,
    target_NH: Tensor,
    arc_KH: Tensor | None,
    arcs: Arcs,
    activation: str,
    kind_A: Tensor | None,
    weight_A: Tensor | None,
) -> Tensor:
    values_AH = gather_source(source_NH, arcs) + gather_target(target_NH, arcs)
    if arc_KH is not None:
        values_AH = values_AH + (arc_KH if kind_A is None else arc_KH.index_select(0, kind_A))
    values_AH = ACTIVATIONS[activation](values_AH)
    if weight_A is not None:
        values_AH = weight_A.unsqueeze(1) * values_AH
    return sum_incoming(values_AH, arcs)


def _fits(source_NH: Tensor, target_NH: Tensor, activation: str, weight_A: Tensor | None) -> bool:
    """Whether the compiled kernel can do it and shall."""
    kernels = compiled_module()
    return (
        kernels is not None
        and activation in kernels.ACTIVATIONS
        and source_NH.device.type == "cpu"
        and source_NH.dtype in (torch.float32, torch.float64)
        and source_NH.dtype == target_NH.dtype
        and source_NH.shape[1] > 0
        and (weight_A is None or not weight_A.requires_grad)
    )


def compiled_module(name: str = ARC_KERNELS) -> ModuleType | None:
    """A module of compiled kernels, where they load and are wanted."""
    if _forced() == PLAIN:
        return None
    kernels = _load(name)
    return kernels if isinstance(kernels, ModuleType) else None


def _forced() -> str | None:
    name = os.environ.get(ENVIRONMENT_VARIABLE) or None
    if name not in (None, PLAIN, COMPILED):
        raise UserError(
            f"{ENVIRONMENT_VARIABLE}={name} names no way to sum over arcs: "
            f"set it to {PLAIN} or {COMPILED}, or unset it."
        )
    if name == COMPILED and isinstance(_load(ARC_KERNELS), str):
        raise UserError(
            f"{ENVIRONMENT_VARIABLE}={COMPILED}, but llvmlite does not load here: install it, or "
            "unset the variable to use plain torch."
        )
    return name


@cache
def _load(name: str) -> ModuleType | str:
    """A module of compiled kernels, or what keeps it from loading."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, RuntimeError) as error:
        return str(error)
