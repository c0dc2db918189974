"""Sums of products with small matrices of weights: machine code where they are large, else torch.

Shapes: N rows, K columns in, H columns out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from lpgnn_cli.ops.activated import compiled_module
from lpgnn_cli.ops.distinct import DistinctRows
from lpgnn_cli.ops.linear import wanted_gradients
from lpgnn_cli.ops.sparse import SparseRows

# Multiplications for which machine code is worth its compilation, which every process pays, and the
# way to it; what is differentiated comes again in every epoch, and pays for that in some 400.
WORTH_A_KERNEL = 8_000_000
AGAIN_AND_AGAIN = 6
# Bytes of weights that stay in a cache beside the rows.
MOST_BYTES = 1 << 17


def add_products(
    blocks: Sequence[Tensor | DistinctRows | SparseRows],
    weights: Sequence[Tensor],
    start: Tensor | None = None,
) -> Tensor:
    """start (say, a bias) + `linear(cat(blocks), cat(weights))`, without the concatenations."""
    total = start
    dense: list[tuple[Tensor, Tensor]] = []
    for block, weight in zip(blocks, weights, strict=True):
        if isinstance(block, DistinctRows):
            if total is None or total.dim() == 1:
                total = block.gather(add_products([block.rows], [weight], total))
            else:
                total = total + block.gather(block.rows @ weight.t())
        elif isinstance(block, SparseRows):
            product = block.times(weight.t())
            total = product if total is None else total + product
        elif block.shape[1] > 0:
            dense.append((block, weight))
    if dense:
        return _add_dense(dense, total, is_own=total is not start)
    if total is None:
        return weights[0].new_zeros(len(blocks[0]), weights[0].shape[0])
    return total if total.dim() == 2 else total.expand(len(blocks[0]), -1)


def _add_dense(
    pairs: Sequence[tuple[Tensor, Tensor]], total: Tensor | None, *, is_own: bool
) -> Tensor:
    """Products after products, added to a total, which may be overwritten if it is our own: it was
    made here, and nobody goes back through its values."""
    blocks, weights = zip(*pairs, strict=True)
    kernels = _kernels_for(blocks, weights, total)
    if kernels is not None:
        return _apply(kernels, len(blocks), total, *blocks, *weights)
    for block, weight in pairs:
        if total is None:
            total = block @ weight.t()
        elif is_own:
            total = total.addmm_(block, weight.t())
        else:
            total = torch.addmm(total, block, weight.t())
        is_own = True
    assert total is not None
    return total


def _kernels_for(
    blocks: Sequence[Tensor], weights: Sequence[Tensor], total: Tensor | None
) -> ModuleType | None:
    """The compiled kernels, if they can do it and gain by it."""
    rows, columns = len(blocks[0]), weights[0].shape[0]
    size = columns * sum(weight.shape[1] for weight in weights)
    x = blocks[0]
    comes_again = torch.is_grad_enabled() and (weights[0].requires_grad or x.requires_grad)
    if rows * size * (AGAIN_AND_AGAIN if comes_again else 1) < WORTH_A_KERNEL:
        return None
    if not x.is_cpu or x.dtype not in (torch.float32, torch.float64):
        return None
    given = (*blocks, *weights) if total is None else (*blocks, *weights, total)
    if any(tensor.dtype != x.dtype for tensor in given) or size * x.element_size() > MOST_BYTES:
        return None
    kernels = compiled_module("lpgnn_cli.ops.product_kernels")
    return kernels if kernels is not None and min(rows, columns) >= kernels.TILE else None


class _Products(Function):
    @staticmethod
    def forward(
        ctx: Any, kernels: ModuleType, count: int, start: Tensor | None, *tensors: Tensor
    ) -> Tensor:
        ctx.kernels, ctx.count = kernels, count
        ctx.has_start = start is not None
        ctx.is_row = start is not None and start.dim() == 1
        ctx.save_for_backward(*tensors)
        blocks, weights = tensors[:count], tensors[count:]
        result: Tensor = kernels.products(blocks, [weight.t() for weight in weights], start)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        blocks, weights = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        wanted = wanted_gradients(ctx)
        of_start = ctx.has_start and wanted.pop(0)
        # Plain operations can be differentiated again.
        again, kernels = torch.is_grad_enabled(), ctx.kernels
        found: list[Tensor | None] = [None, None, None]
        if of_start:
            found[2] = gradient.sum(dim=0) if ctx.is_row else gradient
        for weight, asked in zip(weights, wanted[: ctx.count], strict=True):
            if not asked:
                found.append(None)
            else:
                found.append(gradient @ weight if again else kernels.products([gradient], [weight]))
        for block, asked in zip(blocks, wanted[ctx.count :], strict=True):
            if not asked:
                found.append(None)
            elif again or block.shape[1] == 1:
                found.append(gradient.t() @ block)
            else:
                found.append(kernels.transposed_product(gradient, block))
        return tuple(found)


_apply: Callable[..., Tensor] = _Products.apply
