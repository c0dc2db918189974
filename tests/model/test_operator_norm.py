from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lpgnn_cli.model.operator_norm import norm_of_both, operator_norm, operator_norms


def by_definition(a: Tensor, b: Tensor) -> Tensor:
    norms = [torch.linalg.matrix_norm(w, ord=2) for w in (a + b, a - b)]
    return torch.stack(norms).max()


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 7), (7, 3), (32, 32)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_larger_norm_and_its_gradients_are_those_of_torch(
    shape: tuple[int, int], sign: float
) -> None:
    torch.manual_seed(sum(shape))
    a = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    # The larger one is now the sum, now the difference.
    b = (sign * a.detach() + 0.3 * torch.randn(shape, dtype=torch.float64)).requires_grad_()

    norm, expected = norm_of_both(a, b), by_definition(a, b)

    torch.testing.assert_close(norm, expected)
    torch.testing.assert_close(
        torch.autograd.grad(norm, [a, b]), torch.autograd.grad(expected, [a, b])
    )


@pytest.mark.parametrize("size", [1e-25, 1e-12, 1.0, 1e12, 1e25])
def test_weights_of_any_size_have_a_norm_in_single_precision(size: float) -> None:
    torch.manual_seed(0)
    a, b = ((size * torch.randn(4, 4)).requires_grad_() for _ in range(2))

    torch.testing.assert_close(norm_of_both(a, b) / size, by_definition(a, b) / size)


def test_the_norm_is_the_same_where_no_gradient_is_wanted() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(6, 6, requires_grad=True), torch.randn(6, 6, requires_grad=True)

    with torch.no_grad():
        torch.testing.assert_close(norm_of_both(a, b), by_definition(a, b))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("broken", [0, 1])
def test_a_diverged_weight_has_an_infinite_norm(value: float, broken: int) -> None:
    weights = [torch.ones(3, 3), torch.ones(3, 3)]
    weights[broken][1, 2] = value
    a, b = (weight.requires_grad_() for weight in weights)

    assert norm_of_both(a, b).item() == torch.inf


def test_nothing_stretches_nothing() -> None:
    zero = torch.zeros(3, 3, requires_grad=True)
    assert norm_of_both(zero, zero).item() == 0
    none = torch.zeros(3, 0, requires_grad=True)
    assert norm_of_both(none, none).item() == 0
    assert operator_norm(none).item() == 0


@pytest.mark.parametrize("order", [2, torch.inf])
@pytest.mark.parametrize("shapes", [[(3, 7), (7, 3), (3, 7)], [(3, 7), (5, 3)], [(4, 4)]], ids=str)
def test_several_norms_are_those_of_each(shapes: list[tuple[int, int]], order: float) -> None:
    torch.manual_seed(0)
    weights = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    expected = [float(torch.linalg.matrix_norm(weight, ord=order)) for weight in weights]

    assert operator_norms(weights, order) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_one_diverged_weight_leaves_the_others_their_norms(value: float) -> None:
    weights = [torch.eye(3), torch.full((3, 3), value), torch.zeros(3, 0), 2 * torch.eye(3)]

    assert operator_norms(weights[:2]) == pytest.approx([1, torch.inf])
    assert operator_norms(weights) == pytest.approx([1, torch.inf, 0, 2])
