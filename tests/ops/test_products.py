from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from lpgnn_cli.ops import DistinctRows, SparseRows, add_products, product_kernels, products, threads

TYPES = [torch.float32, torch.float64]
# Rows around a tile and around the blocks of a gradient; columns around the width of registers.
ROWS = [6, 7, 13, 1023, 1024, 1025, 2047, 2049, 3100]
COLUMNS = [6, 7, 15, 16, 17, 50, 64, 65, 130, 300]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small: what is tested here is the kernel."""
    monkeypatch.delenv("LPGNN_ARC_KERNEL", raising=False)
    monkeypatch.setattr(products, "WORTH_A_KERNEL", 0)
    monkeypatch.setattr(products, "MOST_BYTES", 1 << 30)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are called."""
    called: list[str] = []
    for name in ("products", "transposed_product"):
        kernel = getattr(product_kernels, name)

        def counted(*given: object, name: str = name, kernel: object = kernel) -> Tensor:
            called.append(name)
            result: Tensor = kernel(*given)  # type: ignore[operator]
            return result

        monkeypatch.setattr(product_kernels, name, counted)
    return called


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, dtype=dtype).requires_grad_()


def starts(rows: int, columns: int, dtype: torch.dtype) -> list[Tensor | None]:
    return [None, random(columns, dtype=dtype), random(rows, columns, dtype=dtype)]


def by_torch(blocks: Sequence[Tensor], weights: Sequence[Tensor], start: Tensor | None) -> Tensor:
    total = torch.cat(list(blocks), dim=1) @ torch.cat(list(weights), dim=1).t()
    return total if start is None else total + start


def check(blocks: Sequence[Tensor], weights: Sequence[Tensor], start: Tensor | None) -> None:
    """Values and gradients, against those of torch in double precision."""
    found = add_products(blocks, weights, start)
    inputs = [*blocks, *weights, *([] if start is None else [start])]
    gradient = torch.randn_like(found)
    gradients = torch.autograd.grad(found, inputs, gradient)

    exact = [x.detach().double().requires_grad_() for x in inputs]
    count = len(blocks)
    expected = by_torch(
        exact[:count], exact[count : 2 * count], exact[-1] if start is not None else None
    )
    close(found, expected)
    for mine, theirs in zip(
        gradients, torch.autograd.grad(expected, exact, gradient.double()), strict=True
    ):
        close(mine, theirs)


def close(found: Tensor, expected: Tensor) -> None:
    digits = 5e-6 if found.dtype == torch.float32 else 1e-13
    scale = float(expected.detach().abs().max().clamp(min=1))
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=digits * scale)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_any_number_of_rows(rows: int, dtype: torch.dtype, calls: list[str]) -> None:
    torch.manual_seed(rows)
    for start in starts(rows, 17, dtype):
        check([random(rows, 9, dtype=dtype)], [random(17, 9, dtype=dtype)], start)
    assert calls == ["products", "products", "transposed_product"] * 3


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", COLUMNS)
def test_any_number_of_columns(columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(columns)
    for inner in (1, 5, 50):
        for start in starts(40, columns, dtype):
            check([random(40, inner, dtype=dtype)], [random(columns, inner, dtype=dtype)], start)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", [(3, 8), (50, 7, 1), (1, 1, 1, 1)])
def test_several_blocks_in_one_pass(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    blocks = [random(33, size, dtype=dtype) for size in sizes]
    weights = [random(20, size, dtype=dtype) for size in sizes]
    for start in starts(33, 20, dtype):
        check(blocks, weights, start)


def test_blocks_and_weights_that_are_parts_of_others() -> None:
    torch.manual_seed(0)
    whole, weight = random(50, 30), random(12, 30)
    found = add_products(whole.split([18, 12], dim=1), weight.split([18, 12], dim=1))

    torch.testing.assert_close(found, whole @ weight.t())
    # A gradient without memory of its own.
    found.sum().backward()
    torch.testing.assert_close(weight.grad, whole.detach().sum(dim=0).expand(12, 30))


def test_only_what_is_asked_for_is_differentiated(calls: list[str]) -> None:
    labels, weight = torch.randn(20, 5), torch.randn(9, 5, requires_grad=True)
    add_products([labels], [weight]).sum().backward()
    assert calls == ["products", "transposed_product"]


def test_derivatives_of_second_order() -> None:
    torch.manual_seed(0)
    inputs = (random(7, 3), random(8, 3), random(8))
    assert torch.autograd.gradcheck(lambda x, w, b: add_products([x], [w], b), inputs)
    assert torch.autograd.gradgradcheck(lambda x, w, b: add_products([x], [w], b), inputs)


def test_other_kinds_of_rows_are_where_products_start(calls: list[str]) -> None:
    torch.manual_seed(0)
    labels = torch.eye(4).repeat(10, 1)
    distinct, sparse = DistinctRows.of(labels), SparseRows(labels.to_sparse(), labels.t())
    assert distinct is not None
    x, bias = torch.randn(40, 5), torch.randn(9)
    weights = [torch.randn(9, 4), torch.randn(9, 5), torch.randn(9, 4)]

    found = add_products([distinct, x, sparse], weights, bias)

    expected = bias + labels @ weights[0].t() + x @ weights[1].t() + labels @ weights[2].t()
    torch.testing.assert_close(found, expected)
    assert "products" in calls


@pytest.mark.parametrize("start", [None, "row"])
def test_a_pass_computes_what_it_is_asked_for(calls: list[str], start: str | None) -> None:
    """Behind the product lies a sum, so that x is asked for as an inner or an outer value."""
    x, weight, other = random(40, 8), random(9, 8), random(9, 9)
    bias = None if start is None else random(9)
    leaves = [x, weight, other, *([] if bias is None else [bias])]
    result = add_products([add_products([2 * x], [weight], bias)], [other]).square().sum()
    torch.autograd.backward(result, retain_graph=True)
    whole = [leaf.grad for leaf in leaves]
    for leaf, expected, passes in zip(leaves, whole, ("pp", "pt", "t", "p"), strict=False):
        leaf.grad = None
        calls.clear()
        result.backward(inputs=[leaf], retain_graph=True)
        assert "".join(name[0] for name in calls) == passes
        assert torch.equal(leaf.grad, expected)  # type: ignore[arg-type]
        (gradient,) = torch.autograd.grad(result, leaf, retain_graph=True)
        assert torch.equal(gradient, leaf.grad)  # type: ignore[arg-type]


def test_what_is_not_a_number_stays_in_its_row() -> None:
    x = torch.randn(20, 6)
    x[3, 2] = torch.nan
    found = add_products([x], [torch.randn(10, 6)])
    assert found[3].isnan().all()
    assert found[[*range(3), *range(4, 20)]].isfinite().all()


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    torch.manual_seed(0)
    x, weight = torch.randn(5_000, 20).requires_grad_(), torch.randn(30, 20).requires_grad_()
    gradient, before = torch.randn(5_000, 30), torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            result = add_products([x], [weight])
            found.append([result, *torch.autograd.grad(result, [x, weight], gradient)])
    finally:
        torch.set_num_threads(before)
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=True))


@pytest.mark.parametrize(
    ("rows", "columns", "why"), [(5, 20, "rows"), (20, 5, "columns"), (20, 20, "type")]
)
def test_what_the_kernel_cannot_do_is_done_by_torch(
    rows: int, columns: int, why: str, calls: list[str]
) -> None:
    dtype = torch.bfloat16 if why == "type" else torch.float64
    x, weight = torch.randn(rows, 4, dtype=dtype), torch.randn(columns, 4, dtype=dtype)
    torch.testing.assert_close(add_products([x], [weight]), x @ weight.t())
    assert not calls


def test_small_and_unwanted_products_are_those_of_torch(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, weight = torch.randn(30, 4), torch.randn(20, 4)
    monkeypatch.setenv("LPGNN_ARC_KERNEL", "plain")
    add_products([x], [weight])
    monkeypatch.delenv("LPGNN_ARC_KERNEL")
    monkeypatch.setattr(products, "WORTH_A_KERNEL", 30 * 4 * 20 + 1)
    add_products([x], [weight])
    monkeypatch.setattr(products, "WORTH_A_KERNEL", 0)
    monkeypatch.setattr(products, "MOST_BYTES", 4 * 20 * 4 - 1)
    add_products([x], [weight])
    assert not calls


@pytest.mark.parametrize("is_trained", [False, True])
def test_smaller_products_are_worth_it_where_they_come_again(
    is_trained: bool, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "WORTH_A_KERNEL", products.AGAIN_AND_AGAIN * 30 * 4 * 20)
    x, weight = torch.randn(30, 4), torch.randn(20, 4, requires_grad=is_trained)
    add_products([x], [weight])
    with torch.no_grad():
        add_products([x], [weight])
    assert calls == ["products"] * is_trained


def test_nothing_to_multiply() -> None:
    none, weight, bias = torch.randn(8, 0), torch.randn(9, 0), torch.randn(9)
    assert torch.equal(add_products([none], [weight]), torch.zeros(8, 9))
    assert torch.equal(add_products([none], [weight], bias), bias.expand(8, 9))
