from __future__ import annotations

import pytest
import torch
from torch import nn

from lpgnn_cli.model.mlp import MLP, normalisation, row_lengths, taking_statistics


def test_layers_come_in_the_usual_order() -> None:
    mlp = MLP([3, 5, 4, 2], activation="relu", dropout=0.5, norm="layer").eval()
    x = torch.randn(6, 3)
    by_hand = x
    for linear, layer in zip(mlp.linears, [*mlp.hidden_layers, None], strict=True):
        by_hand = linear(by_hand)
        if layer is not None:
            norm, activate, dropout = layer
            assert isinstance(dropout, nn.Dropout)
            by_hand = activate(norm(by_hand))
    torch.testing.assert_close(mlp(x), by_hand)


def test_without_hidden_layers_it_is_one_linear_layer() -> None:
    mlp = MLP([3, 2])
    x = torch.randn(4, 3)
    torch.testing.assert_close(mlp(x), x @ mlp.first.weight.t() + mlp.first.bias)


def test_dropout_acts_in_training_alone() -> None:
    mlp = MLP([3, 50, 2], dropout=0.5)
    x = torch.randn(4, 3)
    assert not torch.equal(mlp(x), mlp(x))
    mlp.eval()
    assert torch.equal(mlp(x), mlp(x))


@pytest.mark.parametrize("rows", [0, 1])
def test_batch_norm_takes_batches_too_small_for_a_variance(rows: int) -> None:
    mlp = MLP([3, 4, 2], norm="batch")
    assert mlp(torch.randn(rows, 3)).shape == (rows, 2)


def test_inputs_without_columns_give_the_bias() -> None:
    mlp = MLP([0, 2])
    torch.testing.assert_close(mlp(torch.zeros(3, 0)), mlp.first.bias.expand(3, 2))


def test_evaluation_normalises_by_the_statistics_that_are_taken_for_it() -> None:
    network = nn.Sequential(normalisation("batch", 3), nn.Dropout(0.5))
    rows = [scale * torch.randn(50, 3) + shift for scale, shift in ((100.0, 7.0), (0.01, -2.0))]
    network.train()(rows[0])
    with torch.no_grad(), taking_statistics(network):
        taken = network(rows[1])
    assert not any(module.training for module in network.modules())
    assert not bool((taken == 0).any()), "nothing is dropped"
    # The variance that is kept is the unbiased one, hence the tolerance.
    torch.testing.assert_close(network(rows[1]), taken, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lengths_of_rows_from_very_short_to_very_long(dtype: torch.dtype) -> None:
    sizes = [1e-27, 1e-20, 1.0, 1e20, 1e37]
    rows = torch.tensor([[3.0, -4.0]], dtype=dtype) * torch.tensor(sizes, dtype=dtype)[:, None]
    there, length = row_lengths(rows)
    assert there.all()
    expected = 5 * torch.tensor(sizes, dtype=dtype)[:, None]
    torch.testing.assert_close(length, expected, rtol=1e-6, atol=0)
    vanished = torch.finfo(dtype).tiny
    nothing = torch.tensor([[0.0, 0.0], [vanished, 0.0], [torch.nan, 1.0]], dtype=dtype)
    there, length = row_lengths(nothing)
    assert not there.any()
    assert length.tolist() == [[1.0]] * 3


def test_the_direction_of_a_row_survives_however_weak_it_is() -> None:
    unit = normalisation("unit", 3)
    rows = torch.tensor([[3.0, 0.0, 4.0], [3e-25, 0.0, 4e-25], [0.0, 0.0, 0.0], [0.0, 1e-44, 0.0]])
    rows.requires_grad_()
    units = unit(rows)
    torch.testing.assert_close(units[1], units[0])
    assert units[2:].tolist() == [[0.0] * 3] * 2
    (gradient,) = torch.autograd.grad(units[:, 0].sum(), rows)
    assert bool(gradient.isfinite().all())
    torch.testing.assert_close(gradient[1] * 1e-25, gradient[0])


def test_the_gradient_of_the_direction() -> None:
    rows = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(normalisation("unit", 3), [rows])
