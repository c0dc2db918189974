"""Values and derivatives of every G, at the edges of the insensitive band as well."""

from __future__ import annotations

import pytest
import torch

from lpgnn_cli.config.model import ConstraintConfig, InsensitiveConstraintConfig
from lpgnn_cli.model.constraints import Constraint, beyond_band, build_constraint

EPS = 0.25
RESIDUALS = [-2.0, -0.5, -EPS, -0.125, 0.0, 0.125, EPS, 0.5, 2.0]
# Name: (values, derivatives) at RESIDUALS.
TABLE = {
    "lin": ([-2, -0.5, -0.25, -0.125, 0, 0.125, 0.25, 0.5, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1]),
    "lin_eps": ([-1.75, -0.25, 0, 0, 0, 0, 0, 0.25, 1.75], [1, 1, 0, 0, 0, 0, 0, 1, 1]),
    "abs": ([2, 0.5, 0.25, 0.125, 0, 0.125, 0.25, 0.5, 2], [-1, -1, -1, -1, 0, 1, 1, 1, 1]),
    "abs_eps": ([1.75, 0.25, 0, 0, 0, 0, 0, 0.25, 1.75], [-1, -1, 0, 0, 0, 0, 0, 1, 1]),
    "squared": (
        [4, 0.25, 0.0625, 0.015625, 0, 0.015625, 0.0625, 0.25, 4],
        [-4, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 4],
    ),
}


def build(name: str) -> Constraint:
    if name.endswith("_eps"):
        return build_constraint(InsensitiveConstraintConfig(name=name, eps=EPS))
    return build_constraint(ConstraintConfig(name=name))


@pytest.mark.parametrize("name", TABLE)
def test_values_and_derivatives(name: str) -> None:
    residual = torch.tensor(RESIDUALS, requires_grad=True)
    values = build(name)(residual)
    (derivatives,) = torch.autograd.grad(values.sum(), residual)
    assert (values.tolist(), derivatives.tolist()) == TABLE[name]


def test_lin_eps_has_the_values_of_the_printed_formula() -> None:
    r = torch.linspace(-1, 1, 201, dtype=torch.float64)
    eps = torch.tensor(EPS, dtype=torch.float64)
    printed = torch.maximum(r, eps) - torch.maximum(-r, eps)
    torch.testing.assert_close(build("lin_eps")(r), printed, rtol=0, atol=1e-15)


@pytest.mark.parametrize("eps", [0.01, 1e-6, 0.1])
def test_lin_eps_is_exactly_zero_on_the_band_in_single_precision(eps: float) -> None:
    constraint = build_constraint(InsensitiveConstraintConfig(name="lin_eps", eps=eps))
    band = torch.cat([torch.linspace(-eps, eps, 1001), torch.tensor([-eps, eps])])
    assert torch.equal(constraint(band.clamp(-eps, eps)), torch.zeros(1003))


def test_norm1_eps_is_one_value_per_node() -> None:
    residual = torch.tensor([[0.5, -1.0], [0.125, -0.0625], [0.0, 0.0]], requires_grad=True)
    values = build("norm1_eps")(residual)
    (derivatives,) = torch.autograd.grad(values.sum(), residual)
    assert values.tolist() == [[1.25], [0.0], [0.0]]
    assert derivatives.tolist() == [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]


def test_what_norm1_eps_still_wants_to_remove_has_the_size_of_its_value() -> None:
    residual = torch.tensor([[0.5, -1.0], [0.125, -0.0625], [0.0, 0.0]])
    config = InsensitiveConstraintConfig(name="norm1_eps", eps=EPS)
    beyond = beyond_band(residual, config)
    torch.testing.assert_close(beyond.abs().sum(dim=1), torch.tensor([1.25, 0.0, 0.0]))
    assert (beyond[0] / residual[0]).unique().numel() == 1
