"""Gathers and sums along arcs against plain indexing, with gradients of first and second order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from lpgnn_cli.ops import Arcs, gather_source, gather_target, sum_incoming, sum_neighbours

# An operation, the same by plain indexing, and values for both.
Case = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Tensor]


def plain_sum_incoming(values: Tensor, arcs: Arcs) -> Tensor:
    return values.new_zeros(arcs.num_nodes, values.shape[1]).index_add(0, arcs.target, values)


CASES: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor, Arcs], Tensor], bool]] = {
    "gather_source": (gather_source, lambda x, arcs: x[arcs.source], False),
    "gather_target": (gather_target, lambda x, arcs: x[arcs.target], False),
    "sum_incoming": (sum_incoming, plain_sum_incoming, True),
    "sum_neighbours": (
        sum_neighbours,
        lambda x, arcs: plain_sum_incoming(x[arcs.source], arcs),
        False,
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, arcs: Arcs) -> Case:
    operation, plain, on_arcs = CASES[request.param]
    count = arcs.num_arcs if on_arcs else arcs.num_nodes
    values = torch.randn(count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return lambda v: operation(v, arcs), lambda v: plain(v, arcs), values


def test_matches_plain_indexing(any_backend: str, case: Case) -> None:
    operation, plain, values = case
    torch.testing.assert_close(operation(values), plain(values), rtol=0, atol=1e-12)


def test_gradients_of_first_and_second_order(any_backend: str, case: Case) -> None:
    operation, _, values = case
    assert gradcheck(operation, values.requires_grad_())
    # The square makes the second derivative something other than zero.
    assert gradgradcheck(lambda v: operation(v).square(), values)


def test_arcs_move_between_devices_and_keep_their_order(arcs: Arcs) -> None:
    assert arcs.to("meta").source_ptr.shape == (8,)
    assert arcs.to("cpu").target_by_source.tolist() == [1, 1, 0, 2, 1, 3, 0, 3]
    assert arcs.in_degree.tolist() == [2, 3, 1, 2, 0, 0, 0]
