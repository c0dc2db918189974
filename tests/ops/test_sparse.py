from __future__ import annotations

import torch

from lpgnn_cli.ops import SparseRows


def test_products_and_their_gradients_are_those_of_the_dense_matrix() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(30, 20, dtype=torch.float64) * (torch.rand(30, 20) < 0.05)
    weight = torch.randn(20, 4, dtype=torch.float64, requires_grad=True)
    rows = SparseRows.of(matrix)
    assert rows is not None
    assert (len(rows), tuple(rows.shape)) == (30, (30, 20))
    torch.testing.assert_close(rows.times(weight), matrix @ weight)
    (ours,) = torch.autograd.grad(rows.times(weight).sin().sum(), weight)
    (dense,) = torch.autograd.grad((matrix @ weight).sin().sum(), weight)
    torch.testing.assert_close(ours, dense)


def test_what_is_mostly_there_is_left_as_it_is() -> None:
    assert SparseRows.of(torch.ones(5, 5)) is None
    assert SparseRows.of(torch.zeros(5, 0)) is None
