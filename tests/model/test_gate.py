"""Products with what a node's label says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.autograd import gradcheck

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.gate import LabelGate

BatchMaker = Callable[..., GraphBatch]


def gate_of(labels: int, size: int = 4, bias: bool = True) -> LabelGate:
    torch.manual_seed(0)
    return LabelGate(labels, size, bias).double()


def test_factors_go_by_the_direction_of_a_label() -> None:
    gate = gate_of(3)
    label = torch.randn(6, 3, dtype=torch.float64)
    expected = label / label.norm(dim=1, keepdim=True) @ gate.linear.weight.t() + gate.linear.bias
    torch.testing.assert_close(gate(label), expected)
    torch.testing.assert_close(gate(100 * label), expected)


def test_without_a_label_factors_are_the_bias() -> None:
    gate = gate_of(3)
    torch.nn.init.constant_(gate.linear.bias, 2.0)
    nothing = torch.zeros(2, 3, dtype=torch.float64)
    assert gate(nothing).eq(2).all()
    assert gate_of(3, bias=False)(nothing).eq(0).all()
    assert gate_of(0)(nothing[:, :0]).shape == (2, 4)


@pytest.mark.parametrize("columns", [1, 32, 1000])
def test_factors_start_with_a_size_of_one(columns: int) -> None:
    factors = gate_of(columns, size=4000)(5 * torch.rand(3, columns, dtype=torch.float64) + 1)
    torch.testing.assert_close(factors.std(dim=1), torch.ones(3).double(), atol=0.1, rtol=0)


def test_gradients_for_labels_and_weights() -> None:
    gate = gate_of(3)
    label = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    parameters = list(gate.parameters())
    assert gradcheck(lambda label, *_: gate(label), [label, *parameters])


def test_nodes_that_look_alike_are_computed_once(make_batch: BatchMaker) -> None:
    batch = make_batch(nodes=4000, labels=50)
    few = torch.eye(50, dtype=torch.float64)[torch.arange(4000) % 9]
    alike = batch.with_features(few)
    assert alike.distinct_features is not None
    gate = gate_of(50)
    torch.testing.assert_close(gate.of_nodes(alike), gate(few))
    torch.testing.assert_close(gate.of_nodes(batch), gate(batch.features))
