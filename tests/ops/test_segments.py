"""Segment operations against loops over the segments, on both backends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from lpgnn_cli.errors import UserError
from lpgnn_cli.ops import backend, segment_max, segment_mean, segment_sum
from lpgnn_cli.ops.kernels import ENVIRONMENT_VARIABLE

SegmentOperation = Callable[..., Tensor]

REDUCTIONS: dict[str, tuple[SegmentOperation, Callable[[Tensor], Tensor]]] = {
    "sum": (segment_sum, lambda rows: rows.sum(dim=0)),
    "mean": (segment_mean, lambda rows: rows.mean(dim=0)),
    "max": (segment_max, lambda rows: rows.amax(dim=0)),
}


def pointers(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0)


def rows(count: int, columns: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, columns, dtype=torch.float64, generator=generator)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=6),
    columns=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_match_a_loop(
    any_backend: str, name: str, lengths: list[int], columns: int, seed: int
) -> None:
    operation, reduce = REDUCTIONS[name]
    values = rows(sum(lengths), columns, seed)
    expected = [
        reduce(part) if len(part) else torch.zeros(columns, dtype=torch.float64)
        for part in values.split(lengths)
    ]
    torch.testing.assert_close(
        operation(values, pointers(lengths)), torch.stack(expected), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    "operation", [segment_sum, segment_mean, segment_max], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("lengths", [[2, 0, 3, 1], [0, 0]])
def test_gradients_of_first_and_second_order(
    any_backend: str, operation: SegmentOperation, lengths: list[int]
) -> None:
    values = rows(sum(lengths), 2).requires_grad_()
    ptr = pointers(lengths)
    assert gradcheck(lambda v: operation(v, ptr), values)
    assert gradgradcheck(lambda v: operation(v, ptr), values)


def test_the_gradient_of_a_tied_maximum_goes_to_the_first(any_backend: str) -> None:
    values = torch.tensor([[1.0], [2.0], [2.0]], requires_grad=True)
    segment_max(values, torch.tensor([0, 3])).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [[0.0], [1.0], [0.0]]


def test_a_maximum_below_zero_is_not_mistaken_for_an_empty_segment(any_backend: str) -> None:
    assert segment_max(torch.tensor([[-5.0], [-3.0]]), torch.tensor([0, 2, 2])).tolist() == [
        [-3.0],
        [0.0],
    ]


@pytest.mark.parametrize("operation", [segment_sum, segment_mean, segment_max])
def test_works_without_columns_and_on_strided_rows(
    any_backend: str, operation: SegmentOperation
) -> None:
    ptr = torch.tensor([0, 2, 3])
    assert operation(torch.zeros(3, 0), ptr).numel() == 0
    wide = rows(3, 4)
    torch.testing.assert_close(operation(wide[:, ::2], ptr), operation(wide, ptr)[:, ::2])


@pytest.mark.parametrize("operation", [segment_sum, segment_mean, segment_max])
def test_runs_on_the_meta_device(any_backend: str, operation: SegmentOperation) -> None:
    values = torch.zeros(3, 2, device="meta", requires_grad=True)
    segments = torch.zeros(3, dtype=torch.int64, device="meta")
    result = operation(values, torch.zeros(6, dtype=torch.int64, device="meta"), segments)
    assert result.shape == (5, 2)
    result.sum().backward()
    assert values.grad is not None
    assert values.grad.shape == values.shape


def test_the_environment_forces_a_backend(any_backend: str) -> None:
    name, reason = backend()
    assert name == any_backend
    assert ENVIRONMENT_VARIABLE in reason


def test_an_unknown_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "cuda")
    with pytest.raises(UserError, match="native or torch_scatter"):
        segment_sum(torch.zeros(1, 1), torch.tensor([0, 1]))


def test_without_torch_scatter_native_torch_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr("lpgnn_cli.ops.kernels._load_torch_scatter", lambda: None)
    assert backend()[0] == "native"
    assert segment_max(torch.ones(2, 1), torch.tensor([0, 2])).tolist() == [[1.0]]
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "torch_scatter")
    with pytest.raises(UserError, match="does not load"):
        segment_sum(torch.zeros(1, 1), torch.tensor([0, 1]))
