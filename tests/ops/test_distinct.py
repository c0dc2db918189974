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


def test_kinds_side_by_side_are_the_kinds_of_whole_rows() -> None:
    """Only those that meet are in the table."""
    left, right = (torch.randint(0, 4, (60,)) for _ in range(2))
    right[left == 2] = 1
    parts = [DistinctRows(torch.randn(4, 3), left), DistinctRows(torch.randn(4, 2), right)]
    found = DistinctRows.side_by_side(parts)
    assert found is not None
    expected = torch.cat([part.rows[part.kind] for part in parts], dim=1)
    assert torch.equal(found.rows[found.kind], expected)
    assert len(found.rows) == len(set(zip(left.tolist(), right.tolist(), strict=True)))


def test_too_many_kinds_side_by_side_are_left_alone() -> None:
    many = DistinctRows(torch.randn(40, 1), torch.arange(1600) % 40)
    other = DistinctRows(torch.randn(40, 1), torch.arange(1600) // 40)
    assert DistinctRows.side_by_side([many, many]) is not None
    assert DistinctRows.side_by_side([many, other]) is None
    assert DistinctRows.side_by_side([many] * 4) is None
