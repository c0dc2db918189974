"""The compiled sum over arcs against plain torch operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from lpgnn_cli.errors import UserError
from lpgnn_cli.ops import Arcs, activated, arc_kernel, arc_kernels, sum_activated
from lpgnn_cli.ops import threads as threading
from lpgnn_cli.ops.activated import COMPILED, ENVIRONMENT_VARIABLE, PLAIN

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
ROWS = ("no rows", "a row per arc", "a table")


def random_arcs(nodes: int, arcs: int) -> Arcs:
    """Some nodes have no arcs in, or none out."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(0, nodes - 2, (arcs,), generator=generator)
    target = torch.randint(2, nodes, (arcs,), generator=generator).sort().values
    return Arcs.from_sorted(source, target, nodes)


class Case:
    """Inputs of one sum."""

    def __init__(
        self,
        arcs: Arcs,
        columns: int,
        dtype: torch.dtype = torch.float64,
        activation: str = "tanh",
        rows: str = ROWS[0],
        weighted: bool = False,
    ) -> None:
        torch.manual_seed(0)
        self.arcs, self.activation = arcs, activation
        shapes = [(arcs.num_nodes, columns)] * 2
        if rows != ROWS[0]:
            shapes.append((3 if rows == ROWS[2] else arcs.num_arcs, columns))
        self.inputs = [(2 * torch.randn(s, dtype=dtype)).requires_grad_() for s in shapes]
        self.gradient = torch.randn(shapes[0], dtype=dtype)
        self.kind = torch.randint(0, 3, (arcs.num_arcs,)) if rows == ROWS[2] else None
        self.weight = torch.rand(arcs.num_arcs, dtype=dtype) if weighted else None

    def sum(self, source: Tensor, target: Tensor, arc: Tensor | None = None) -> Tensor:
        return sum_activated(
            source,
            target,
            self.arcs,
            self.activation,
            arc_KH=arc,
            kind_A=self.kind,
            weight_A=self.weight,
        )

    def value_and_gradients(self) -> list[Tensor]:
        value = self.sum(*self.inputs)
        return [value.detach(), *torch.autograd.grad(value, self.inputs, self.gradient)]


Compare = Callable[[Case], list[tuple[Tensor, ...]]]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Value and gradients of a case, each in plain operations and compiled."""

    def compute(case: Case) -> list[tuple[Tensor, ...]]:
        found = []
        for name in (PLAIN, COMPILED):
            monkeypatch.setenv(ENVIRONMENT_VARIABLE, name)
            found.append(case.value_and_gradients())
        return list(zip(*found, strict=True))

    return compute


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("activation", arc_kernels.ACTIVATIONS)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_values_and_gradients_of_every_variant(
    both: Compare, dtype: torch.dtype, activation: str, rows: str, weighted: bool
) -> None:
    case = Case(random_arcs(40, 150), 11, dtype, activation, rows, weighted)
    for plain, compiled in both(case):
        torch.testing.assert_close(compiled, plain, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 50, 64, 127, 300])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_any_number_of_columns(both: Compare, dtype: torch.dtype, columns: int) -> None:
    case = Case(random_arcs(9, 30), columns, dtype, "relu", ROWS[2])
    for plain, compiled in both(case):
        torch.testing.assert_close(compiled, plain, rtol=0, atol=TOLERANCE[dtype])


def test_no_arcs_and_no_nodes(both: Compare) -> None:
    none = torch.empty(0, dtype=torch.int64)
    for nodes in (0, 3):
        for plain, compiled in both(Case(Arcs.from_sorted(none, none, nodes), 5)):
            assert torch.equal(plain, compiled)
            assert torch.equal(compiled, torch.zeros(nodes, 5, dtype=torch.float64))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("activation", arc_kernels.ACTIVATIONS)
def test_numbers_that_are_none_stay_so_and_infinities_saturate(
    both: Compare, dtype: torch.dtype, activation: str
) -> None:
    case = Case(random_arcs(12, 40), 6, dtype, activation)
    with torch.no_grad():
        case.inputs[0][0] = torch.nan
        case.inputs[0][1] = torch.inf
        case.inputs[0][2] = -torch.inf
    for plain, compiled in both(case):
        torch.testing.assert_close(compiled, plain, rtol=0, atol=TOLERANCE[dtype], equal_nan=True)


def test_tanh_keeps_the_digits_of_its_precision() -> None:
    arcs = Arcs.from_sorted(torch.tensor([0]), torch.tensor([0]), 1)
    double = torch.cat([torch.linspace(-30, 30, 100_001), torch.logspace(-300, 1, 5_000)]).double()
    for dtype, absolute, relative in ((torch.float32, 3e-7, 4e-7), (torch.float64, 4e-16, 1e-15)):
        x = double.to(dtype)
        found = sum_activated(x[None], torch.zeros_like(x)[None], arcs, "tanh")[0]
        exact = x.double().tanh()
        error = (found.double() - exact).abs()
        assert float(error.max()) <= absolute
        assert float((error / exact.abs().clamp(min=1e-30)).max()) <= relative
        assert float(found.abs().max()) <= 1


@pytest.mark.parametrize("rows", ROWS)
def test_derivatives_of_first_and_second_order(arcs: Arcs, rows: str) -> None:
    case = Case(arcs, 3, rows=rows, weighted=True)
    assert gradcheck(case.sum, case.inputs)
    assert gradgradcheck(case.sum, case.inputs)


def test_rows_that_do_not_lie_side_by_side(both: Compare) -> None:
    case = Case(random_arcs(9, 30), 9)
    case.inputs = [torch.randn(9, 9, dtype=torch.float64).t().requires_grad_() for _ in range(2)]
    case.gradient = torch.ones(1, 1, dtype=torch.float64).expand(9, 9)
    for plain, compiled in both(case):
        torch.testing.assert_close(compiled, plain, rtol=0, atol=1e-12)


def test_nothing_of_the_size_of_the_arcs_is_stored() -> None:
    """128 arcs per node: a single row per arc would be the largest thing by far."""
    case = Case(random_arcs(20, 2560), 16)
    node_bytes = case.inputs[0].numel() * 8
    stored = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal stored
        stored += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        case.sum(*case.inputs)
    assert stored <= 3 * node_bytes


@pytest.mark.parametrize("rows", ROWS)
def test_a_pass_for_some_of_the_inputs_gives_what_one_for_all_gives(rows: str) -> None:
    case = Case(random_arcs(50, 300), 16, rows=rows)
    value = case.sum(*case.inputs)
    value.backward(case.gradient, retain_graph=True)
    for known in case.inputs:
        expected, known.grad = known.grad, None
        value.backward(case.gradient, inputs=[known], retain_graph=True)
        torch.testing.assert_close(known.grad, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rows", ROWS)
def test_lists_of_arcs_are_made_where_they_are_read(rows: str) -> None:
    case = Case(random_arcs(50, 300), 16, rows=rows)
    case.value_and_gradients()
    assert "target" not in vars(case.arcs)
    assert ("by_source" in vars(case.arcs)) is (rows != ROWS[0])


@pytest.mark.parametrize("rows", ROWS)
def test_the_number_of_threads_changes_no_bit(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "WORTH_A_THREAD", 1)
    case = Case(random_arcs(5_000, 60_000), 7, torch.float32, rows=rows)
    assert len(case.arcs.blocks_by_source) > 3
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(case.value_and_gradients())
    finally:
        torch.set_num_threads(before)
    for one, *others in zip(*found, strict=True):
        assert all(torch.equal(one, other) for other in others)


def test_what_the_kernel_does_not_know_goes_the_plain_way(both: Compare) -> None:
    for plain, compiled in both(Case(random_arcs(9, 30), 4, activation="elu")):
        assert torch.equal(plain, compiled)


def test_without_llvmlite_the_plain_way_is_taken_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    assert arc_kernel() == (COMPILED, "llvmlite is installed")
    monkeypatch.setattr(activated, "_load", lambda name: "No module named 'llvmlite'")
    name, reason = arc_kernel()
    assert name == PLAIN
    assert "No module named 'llvmlite'" in reason
    case = Case(random_arcs(9, 30), 4)
    assert len(case.value_and_gradients()) == 3
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, COMPILED)
    with pytest.raises(UserError, match="install it"):
        arc_kernel()


def test_a_wrong_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "numba")
    with pytest.raises(UserError, match="plain or compiled"):
        arc_kernel()
