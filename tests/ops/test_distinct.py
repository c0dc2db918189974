"""Few distinct rows: the same matrix, found exactly or not at all."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from lpgnn_cli.ops import DistinctRows
from lpgnn_cli.ops.distinct import SAMPLE


@pytest.mark.parametrize("count", [40, SAMPLE + 500])
def test_one_hot_rows_are_found_exactly(count: int) -> None:
    matrix = torch.eye(5)[torch.randint(0, 5, (count,))]
    found = DistinctRows.of(matrix)
    assert found is not None
    assert len(found) == count
    assert found.rows.shape[0] <= 5
    assert torch.equal(found.rows[found.kind], matrix)
    chosen = torch.tensor([3, 1, 1])
    assert torch.equal(found.take(chosen).gather(found.rows), matrix[chosen])


def test_many_rows_empty_ones_and_other_devices_are_left_alone() -> None:
    assert DistinctRows.of(torch.randn(300, 2)) is None
    late = torch.cat([torch.zeros(SAMPLE, 1), torch.randn(3 * SAMPLE, 1)])
    assert DistinctRows.of(late) is None
    assert DistinctRows.of(torch.zeros(9, 0)) is None
    assert DistinctRows.of(torch.zeros(9, 2, device="meta")) is None


def test_different_rows_are_never_taken_for_one() -> None:
    """So large that the numbers made of them coincide; NaN equals nothing."""
    assert DistinctRows.of(torch.tensor([[1e30, 0.0], [1e30, 1.0]]).repeat(20, 1)) is None
    assert DistinctRows.of(torch.full((20, 2), torch.nan)) is None


def test_gradients_of_first_and_second_order() -> None:
    found = DistinctRows.of(torch.eye(3)[[0, 2, 2, 0, 2, 2, 0, 0, 2, 2, 2, 2]])
    assert found is not None
    values = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(found.gather, values)
    assert gradgradcheck(found.gather, values)
