"""The two passes of `sum_activated` in machine code: by target forward, by source backward.

    y[v]  = Σ over arcs a = (u, v) of w_a act(s_a),       s_a = P[u] + Q[v] + R[a]
    ∂Q[v] = ∂y[v] Σ w_a act'(s_a)                         the sum is made by the forward pass
    ∂P[u] = Σ over arcs out of u of w_a act'(s_a) ∂y[v]   s_a is computed again
    ∂R[a] = w_a act'(s_a) ∂y[v]

so that nothing with a row per arc is stored, unless R itself has one. Every node is summed by one
thread in the order of its arcs, and ∂R of a table in blocks that depend on the arcs alone: the
result does not depend on the number of threads.

Milliseconds on one CPU thread (AVX-512) for 193,000 arcs among 20,000 nodes, H = 50, tanh:

                              forward | backward
    LLVM through llvmlite         3.2 | 4.0    (sums stay in registers; 0.03 s to compile)
    numba                         5.4 | 5.2    (0.2 s more to import, 1 s to compile or a cache)
    R as a table of 4 kinds       3.2 | 4.8
    R with a row per arc            - | 47     (most of it for ∂R)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from llvmlite import ir
from torch import Tensor

from lpgnn_cli.ops.arcs import Arcs
from lpgnn_cli.ops.lanes import (
    Code,
    Compiled,
    Lanes,
    compile_kernel,
    fitting_width,
    integer,
)
from lpgnn_cli.ops.threads import run_all

# Rows are asked for so many arcs before they are needed: on a million nodes with ten random
# neighbours each, H = 16, forward and backward pass take 4 and 5 ns per arc. With 16 arcs it is 9
# and 10; with 256, 3 and 6.
AHEAD = 96

# Registers side by side: what an arc costs beside its numbers is paid once for all of them.
ABREAST = 4

# x p(x²) / q(x²), fitted to tanh on [-8, 8] with an error of 6e-9; beyond, tanh is 1 to 2e-7.
NUMERATOR = (1.0, 0.13438222, 0.0035641917, 2.1773812e-05, 1.5062557e-08)
DENOMINATOR = (1.0, 0.46771544, 0.026136152, 0.00033992369, 8.4539761e-07)


def _polynomial(coefficients: tuple[float, ...], x: Lanes) -> Lanes:
    value = x.code.lanes(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def _clamp(x: Lanes, bound: float) -> Lanes:
    x = x.where(">", bound, bound, x)
    return x.where("<", -bound, -bound, x)


def _tanh(x: Lanes) -> tuple[Lanes, Lanes]:
    value = _tanh_single(x) if x.code.number_bytes == 4 else _tanh_double(x)
    return value, x.code.lanes(1.0) - value * value


def _tanh_single(x: Lanes) -> Lanes:
    x = _clamp(x, 8.0)
    square = x * x
    return x * _polynomial(NUMERATOR, square) / _polynomial(DENOMINATOR, square)


def _tanh_double(x: Lanes) -> Lanes:
    """(e^2x - 1) / (e^2x + 1), with e^2x = 2^n e^r, |r| <= ln 2 / 2, and e^r - 1 by Taylor."""
    two_x = _clamp(x, 20.0) * 2.0
    # Large enough that adding it rounds to an integer.
    rounding = 1.5 * 2.0**52
    shifted = two_x * (1 / math.log(2)) + rounding
    n = shifted - rounding
    # ln 2 in two parts, the first so short that its multiples are exact.
    high = 0.693145751953125
    low = 1.42860682030941723212e-06
    r = two_x - n * high - n * low
    power = x.code.power_of_two(shifted, rounding)
    growth = r * _polynomial(tuple(1 / math.factorial(k) for k in range(1, 15)), r) * power
    return (growth + (power - 1.0)) / (growth + (power + 1.0))


def _relu(x: Lanes) -> tuple[Lanes, Lanes]:
    # As torch has it: the derivative is 0 at 0, and NaN stays NaN with a derivative of 1.
    return x.where("<=", 0.0, 0.0, x), x.where("<=", 0.0, 0.0, 1.0)


def _identity(x: Lanes) -> tuple[Lanes, Lanes]:
    return x, x.code.lanes(1.0)


# The value and the derivative.
ACTIVATIONS: dict[str, Callable[[Lanes], tuple[Lanes, Lanes]]] = {
    "tanh": _tanh,
    "relu": _relu,
    "identity": _identity,
}


@dataclass(frozen=True)
class Variant:
    """What a kernel is compiled for."""

    activation: str
    number_bytes: int
    width: int
    # Registers that a row is computed in at a time.
    abreast: int
    # Whether there is R, and whether it is a table, with one row for arcs of the same kind.
    rows: bool
    table: bool
    weighted: bool
    # Whether the forward pass sums act', or the backward pass computes the gradient of R.
    gradient: bool


@dataclass(frozen=True)
class Columns:
    """As many columns as there are lanes: where they start, and how many of them the ones before
    have already."""

    start: ir.Value
    seen: ir.Value


@contextmanager
def _columns(code: Code, columns: ir.Value, abreast: int) -> Iterator[list[Columns]]:
    """Columns side by side. None are beyond the last one, whatever their number."""
    builder = code.builder
    last = builder.sub(columns, integer(code.width))
    with code.loop(integer(0), columns, abreast * code.width) as first:
        found = []
        for register in range(abreast):
            wanted = builder.add(first, integer(register * code.width))
            beyond = builder.icmp_signed(">", wanted, last)
            start = builder.select(beyond, last, wanted)
            found.append(Columns(start, builder.sub(wanted, start)))
        yield found


def _ahead(code: Code, arc: ir.Value, last: ir.Value) -> ir.Value:
    """The arc that comes some arcs later, or the last one."""
    later = code.builder.add(arc, integer(AHEAD))
    return code.builder.select(code.builder.icmp_signed("<", later, last), later, last)


def _write_forward(
    variant: Variant,
    code: Code,
    first: ir.Value,
    stop: ir.Value,
    columns: ir.Value,
    ptr: ir.Value,
    source: ir.Value,
    p: ir.Value,
    q: ir.Value,
    r: ir.Value,
    kind: ir.Value,
    weight: ir.Value,
    y: ir.Value,
    slope: ir.Value,
) -> None:
    builder = code.builder
    last = builder.sub(code.integer_at(ptr, stop), integer(1))
    with code.loop(first, stop) as v:
        arc_start = code.integer_at(ptr, v)
        arc_stop = code.integer_at(ptr, builder.add(v, integer(1)))
        with _columns(code, columns, variant.abreast) as registers:
            row = builder.mul(v, columns)
            here = [builder.add(row, register.start) for register in registers]
            own = [code.load(q, place) for place in here]
            totals, slopes = ([code.zero() for _ in registers] for _ in range(2))
            with code.loop(arc_start, arc_stop) as a:
                u = builder.mul(code.integer_at(source, a), columns)
                later = builder.mul(code.integer_at(source, _ahead(code, a, last)), columns)
                if variant.rows:
                    number = code.integer_at(kind, a) if variant.table else a
                    r_row = builder.mul(number, columns)
                for i, register in enumerate(registers):
                    code.prefetch(p, builder.add(later, register.start))
                    s = code.load(p, builder.add(u, register.start)) + own[i]
                    if variant.rows:
                        s = s + code.load(r, builder.add(r_row, register.start))
                    value, derivative = ACTIVATIONS[variant.activation](s)
                    if variant.weighted:
                        w = code.spread(weight, a)
                        value, derivative = w * value, w * derivative
                    totals[i].add(value)
                    if variant.gradient:
                        slopes[i].add(derivative)
            for place, total, slope_sum in zip(here, totals, slopes, strict=True):
                code.store(total.total, y, place)
                if variant.gradient:
                    code.store(slope_sum.total, slope, place)


def _write_backward(
    variant: Variant,
    code: Code,
    first: ir.Value,
    stop: ir.Value,
    columns: ir.Value,
    ptr: ir.Value,
    target: ir.Value,
    arc: ir.Value,
    p: ir.Value,
    q: ir.Value,
    r: ir.Value,
    kind: ir.Value,
    weight: ir.Value,
    dy: ir.Value,
    dp: ir.Value,
    dr: ir.Value,
) -> None:
    builder = code.builder
    last = builder.sub(code.integer_at(ptr, stop), integer(1))
    with code.loop(first, stop) as u:
        arc_start = code.integer_at(ptr, u)
        arc_stop = code.integer_at(ptr, builder.add(u, integer(1)))
        with _columns(code, columns, variant.abreast) as registers:
            row = builder.mul(u, columns)
            here = [builder.add(row, register.start) for register in registers]
            own = [code.load(p, place) for place in here]
            totals = [code.zero() for _ in registers]
            with code.loop(arc_start, arc_stop) as i:
                v = builder.mul(code.integer_at(target, i), columns)
                later = builder.mul(code.integer_at(target, _ahead(code, i, last)), columns)
                if variant.rows or variant.weighted:
                    a = code.integer_at(arc, i)
                if variant.rows:
                    number = code.integer_at(kind, a) if variant.table else a
                    r_row = builder.mul(number, columns)
                for register, own_part, total in zip(registers, own, totals, strict=True):
                    for matrix in (q, dy):
                        code.prefetch(matrix, builder.add(later, register.start))
                    there = builder.add(v, register.start)
                    s = own_part + code.load(q, there)
                    if variant.rows:
                        at_row = builder.add(r_row, register.start)
                        s = s + code.load(r, at_row)
                    _, derivative = ACTIVATIONS[variant.activation](s)
                    gradient = derivative * code.load(dy, there)
                    if variant.weighted:
                        gradient = code.spread(weight, a) * gradient
                    total.add(gradient)
                    if variant.rows and variant.gradient:
                        if variant.table:
                            gradient = code.load(dr, at_row) + code.from_lane(
                                gradient, register.seen
                            )
                        code.store(gradient, dr, at_row)
            for place, total in zip(here, totals, strict=True):
                code.store(total.total, dp, place)


@cache
def _compiled(write: Callable[..., None], pointers: int, variant: Variant) -> Compiled:
    return compile_kernel(partial(write, variant), 3, pointers, variant.number_bytes, variant.width)


@dataclass(frozen=True)
class ArcSum:
    """One sum: all that is not differentiated. R is a row per arc, or per kind of arc."""

    arcs: Arcs
    activation: str
    kind: Tensor | None
    weight: Tensor | None

    def forward(
        self, p: Tensor, q: Tensor, r: Tensor | None, *, with_slope: bool
    ) -> tuple[Tensor, Tensor | None]:
        """y, and the sum of w act' where it is wanted."""
        p, q, r = p.contiguous(), q.contiguous(), _contiguous(r)
        y = torch.empty_like(q)
        slope = torch.empty_like(q) if with_slope else None
        kernel = _compiled(_write_forward, 9, self._variant(p, r, with_slope)).call
        arcs = self.arcs
        tensors = (arcs.ptr, arcs.source, p, q, r, self.kind, self.weight, y, slope)
        addresses = _addresses(tensors)

        def run(first: int, stop: int) -> None:
            kernel(first, stop, q.shape[1], *addresses)

        run_all(run, arcs.blocks_by_target, arcs.num_arcs * q.shape[1])
        return y, slope

    def backward(
        self, p: Tensor, q: Tensor, r: Tensor | None, dy: Tensor, *, with_rows: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The gradients of P, and of R where it is wanted."""
        arcs = self.arcs
        p, q, r, dy = p.contiguous(), q.contiguous(), _contiguous(r), dy.contiguous()
        dp = torch.empty_like(p)
        kernel = _compiled(_write_backward, 11, self._variant(p, r, with_rows)).call
        # The order is for what belongs to arcs.
        order = None if r is None and self.weight is None else arcs.by_source
        tensors = (arcs.source_ptr, arcs.target_by_source, order)
        addresses = _addresses((*tensors, p, q, r, self.kind, self.weight, dy, dp))
        work = arcs.num_arcs * p.shape[1]
        blocks = arcs.blocks_by_source
        if r is None or not with_rows or self.kind is None:
            dr = torch.empty_like(r) if r is not None and with_rows else None

            def run(first: int, stop: int) -> None:
                kernel(first, stop, p.shape[1], *addresses, _address(dr))

            run_all(run, blocks, work)
            return dp, dr

        tables = r.new_zeros(len(blocks) - 1, *r.shape)
        table_of_block = dict(zip(blocks, tables.unbind(), strict=False))

        def run_block(first: int, stop: int) -> None:
            kernel(first, stop, p.shape[1], *addresses, _address(table_of_block[first]))

        run_all(run_block, blocks, work, one_by_one=True)
        return dp, tables.sum(dim=0)

    def _variant(self, p: Tensor, r: Tensor | None, gradient: bool) -> Variant:
        size = p.element_size()
        width = fitting_width(p.shape[1], size)
        return Variant(
            activation=self.activation,
            number_bytes=size,
            width=width,
            abreast=min(ABREAST, -(-p.shape[1] // width)),
            rows=r is not None,
            table=self.kind is not None,
            weighted=self.weight is not None,
            gradient=gradient,
        )


def _contiguous(rows: Tensor | None) -> Tensor | None:
    return None if rows is None else rows.contiguous()


def _addresses(tensors: tuple[Tensor | None, ...]) -> list[int]:
    return [_address(tensor) for tensor in tensors]


def _address(tensor: Tensor | None) -> Any:
    return 0 if tensor is None else tensor.data_ptr()
