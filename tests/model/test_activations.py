from __future__ import annotations

import pytest
import torch
from torch.autograd import grad

from lpgnn_cli.config.model import ACTIVATIONS
from lpgnn_cli.model.activations import activation


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_of_the_schema_exists(name: str) -> None:
    assert activation(name)(torch.zeros(1)).shape == (1,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tanh_and_its_derivatives_are_those_of_torch(dtype: torch.dtype) -> None:
    x = torch.linspace(-100, 100, 20001, dtype=dtype, requires_grad=True)
    tolerance = 2e-6 if dtype is torch.float32 else 0.0
    results = []
    for tanh in (activation("tanh"), torch.tanh):
        values = tanh(x)
        (first,) = grad(values.sum(), x, create_graph=True)
        (second,) = grad(first.sum(), x)
        results.append((values, first, second))
    for mine, other in zip(*results, strict=True):
        assert mine.dtype is dtype
        torch.testing.assert_close(mine, other, rtol=0, atol=tolerance)
