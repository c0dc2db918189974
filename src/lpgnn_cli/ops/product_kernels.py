"""Products of a tall matrix with a small one, in machine code.

torch's products are those of MKL, which on processors of other makers leaves half of the width of
their registers unused. Microseconds on one thread of an AMD EPYC (Zen 5), here | MKL:

    N, K, H                X W        Xᵀ Y
    3371, 50, 50       79 | 186    92 | 202
    19773, 50, 50    460 | 1120  530 | 1250
    1150, 32, 32         9 | 23     10 | 25    (a call of either takes 20 more than one of torch)

A row is summed by one thread in the order of its columns, and a gradient of weights in blocks that
depend on the rows alone: the result does not depend on the number of threads.

Shapes: N rows, K columns in, H columns out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from llvmlite import ir
from torch import Tensor

from lpgnn_cli.ops.lanes import Code, Compiled, compile_kernel, fitting_width, integer
from lpgnn_cli.ops.threads import run_all

# Rows of a tile, and registers side by side: their sums and what they are made of stay in 32.
TILE, ABREAST = 6, 4
# Rows that are read once for every tile of a gradient: few enough to stay in the cache.
BLOCK = 1024


@dataclass(frozen=True)
class Variant:
    """What a kernel is compiled for."""

    number_bytes: int
    columns: int
    blocks: int
    # Nothing, a row (a bias), or a matrix that products are added to.
    start: str = "nothing"

    @property
    def width(self) -> int:
        return fitting_width(self.columns, self.number_bytes)

    def groups(self) -> list[list[int]]:
        """Where registers start, as many as are computed together; the last one ends with the last
        column, whatever their number."""
        starts = [min(c, self.columns - self.width) for c in range(0, self.columns, self.width)]
        return [starts[i : i + ABREAST] for i in range(0, len(starts), ABREAST)]


def _write_product(variant: Variant, code: Code, *arguments: ir.Value) -> None:
    """y = start + Σ x_b w_b: x_b (N, K_b) and w_b (K_b, H) by rows."""
    builder, columns = code.builder, integer(variant.columns)
    first, stop, *inner = arguments[: 2 + variant.blocks]
    start, y, *matrices = arguments[2 + variant.blocks :]
    last = builder.sub(stop, integer(TILE))
    with code.loop(first, stop, TILE) as wanted:
        row = builder.select(builder.icmp_signed(">", wanted, last), last, wanted)
        rows = [builder.add(row, integer(i)) for i in range(TILE)]
        here = [builder.mul(r, columns) for r in rows]
        for group in variant.groups():
            sums = [[code.zero() for _ in group] for _ in rows]
            for block, size in enumerate(inner):
                x, w = matrices[2 * block : 2 * block + 2]
                places = [builder.mul(r, size) for r in rows]
                with code.loop(integer(0), size) as k:
                    at = builder.mul(k, columns)
                    weights = [code.load(w, builder.add(at, integer(c))) for c in group]
                    for place, of_row in zip(places, sums, strict=True):
                        value = code.spread(x, builder.add(place, k))
                        for total, weight in zip(of_row, weights, strict=True):
                            total.add(value * weight)
            for place, of_row in zip(here, sums, strict=True):
                for total, c in zip(of_row, group, strict=True):
                    at = builder.add(place, integer(c))
                    if variant.start != "nothing":
                        is_row = variant.start == "row"
                        total.add(code.load(start, integer(c) if is_row else at))
                    code.store(total.total, y, at)


def _write_transposed(
    variant: Variant,
    code: Code,
    first: ir.Value,
    stop: ir.Value,
    blocks: ir.Value,
    rows: ir.Value,
    size: ir.Value,
    x: ir.Value,
    y: ir.Value,
    tables: ir.Value,
) -> None:
    """xᵀ y of the rows of every block, some of all blocks: x (N, K) and y (N, H)."""
    builder, columns = code.builder, integer(variant.columns)
    last = builder.sub(size, integer(TILE))
    with code.loop(first, stop) as block:
        following = builder.add(block, integer(1))
        begin, end = builder.mul(block, integer(BLOCK)), builder.mul(following, integer(BLOCK))
        # None is smaller than a tile: the last one takes what is left.
        end = builder.select(builder.icmp_signed("==", following, blocks), rows, end)
        table = builder.mul(block, size)
        with code.loop(integer(0), size, TILE) as wanted:
            tile = builder.select(builder.icmp_signed(">", wanted, last), last, wanted)
            for group in variant.groups():
                sums = [[code.zero() for _ in group] for _ in range(TILE)]
                with code.loop(begin, end) as n:
                    at, place = builder.mul(n, columns), builder.add(builder.mul(n, size), tile)
                    row = [code.load(y, builder.add(at, integer(c))) for c in group]
                    for i, of_tile in enumerate(sums):
                        value = code.spread(x, builder.add(place, integer(i)))
                        for total, number in zip(of_tile, row, strict=True):
                            total.add(value * number)
                for i, of_tile in enumerate(sums):
                    here = builder.add(table, builder.add(tile, integer(i)))
                    here = builder.mul(here, columns)
                    for total, c in zip(of_tile, group, strict=True):
                        code.store(total.total, tables, builder.add(here, integer(c)))


def _compiled(
    write: Callable[..., None], integers: int, pointers: int, variant: Variant
) -> Compiled:
    written = partial(write, variant)
    return compile_kernel(written, integers, pointers, variant.number_bytes, variant.width)


@cache
def _product(number_bytes: int, columns: int, blocks: int, start: str) -> Compiled:
    variant = Variant(number_bytes, columns, blocks, start)
    return _compiled(_write_product, 2 + blocks, 2 + 2 * blocks, variant)


@cache
def _transposed(number_bytes: int, columns: int) -> Compiled:
    return _compiled(_write_transposed, 5, 3, Variant(number_bytes, columns, 1))


def products(
    blocks: Sequence[Tensor], weights: Sequence[Tensor], start: Tensor | None = None
) -> Tensor:
    """(N, H): start + Σ x_b w_b, of x_b (N, K_b) with at least TILE rows and w_b (K_b, H)."""
    x = [block.contiguous() for block in blocks]
    w = [weight.contiguous() for weight in weights]
    rows, columns = len(x[0]), w[0].shape[1]
    start = None if start is None else start.contiguous()
    kind = "nothing" if start is None else "row" if start.dim() == 1 else "matrix"
    kernel = _product(x[0].element_size(), columns, len(x), kind).call
    y = x[0].new_empty(rows, columns)
    sizes = [weight.shape[0] for weight in w]
    addresses = [0 if start is None else start.data_ptr(), y.data_ptr()]
    for block, weight in zip(x, w, strict=True):
        addresses += [block.data_ptr(), weight.data_ptr()]

    def run(first: int, stop: int) -> None:
        kernel(first, stop, *sizes, *addresses)

    run_all(run, _bounds(rows), rows * sum(sizes))
    return y


def transposed_product(x_NK: Tensor, y_NH: Tensor) -> Tensor:
    """(K, H): xᵀ y; K is at least TILE."""
    # The wider one by columns: more registers side by side wait less for one another.
    is_turned = x_NK.shape[1] > y_NH.shape[1] >= TILE
    x, y = (m.contiguous() for m in ((y_NH, x_NK) if is_turned else (x_NK, y_NH)))
    rows, size = x.shape
    kernel = _transposed(x.element_size(), y.shape[1]).call
    blocks = max(1, rows // BLOCK)
    tables = x.new_empty(blocks, size, y.shape[1])
    addresses = [x.data_ptr(), y.data_ptr(), tables.data_ptr()]

    def run(first: int, stop: int) -> None:
        kernel(first, stop, blocks, rows, size, *addresses)

    run_all(run, list(range(blocks + 1)), rows * size)
    result = tables.sum(dim=0) if blocks > 1 else tables[0]
    return result.t() if is_turned else result


def _bounds(rows: int) -> list[int]:
    """Of blocks of rows; the last one is the largest, so that none is smaller than a tile."""
    return [*range(0, max(1, rows - BLOCK + 1), BLOCK), rows]
