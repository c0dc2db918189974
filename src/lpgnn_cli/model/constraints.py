"""The functions G that relax the constraint x = f_a(x), element by element or node by node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from torch import Tensor

from lpgnn_cli.config.model import CONSTRAINTS, ConstraintConfig, InsensitiveConstraintConfig
from lpgnn_cli.errors import UserError

Constraint = Callable[[Tensor], Tensor]
G = TypeVar("G", bound=Callable[[Tensor, Any], Tensor])


def constraint(name: str, settings: type[ConstraintConfig] = ConstraintConfig) -> Callable[[G], G]:
    """Decorator: `g=<name>` relaxes the constraint by this function of the residual and config."""

    def add(function: G) -> G:
        if not callable(function):
            raise UserError(f"g={name} is not a function of the residual and the config.")
        CONSTRAINTS.add(name, ConstraintConfig, settings, function)
        return function

    return add


def build_constraint(config: ConstraintConfig) -> Constraint:
    return partial(CONSTRAINTS.implementation(config), config=config)


@constraint("lin")
def lin(residual: Tensor, config: ConstraintConfig) -> Tensor:
    return residual


@constraint("lin_eps", InsensitiveConstraintConfig)
def insensitive_lin(residual: Tensor, config: InsensitiveConstraintConfig) -> Tensor:
    return lin_eps(residual, config.eps)


def lin_eps(residual: Tensor, eps: float) -> Tensor:
    """Zero on all of [-eps, eps], the signed distance to that band beyond it.

    It is the printed max(r, eps) - max(-r, eps), whose derivative at r = ±eps would depend on how
    a library splits ties of max; here it is 0 on the closed band.
    """
    return residual - residual.clamp(-eps, eps)


def beyond_band(residual: Tensor, config: ConstraintConfig) -> Tensor:
    """What a constraint still wants to remove of a residual: all of it but for its band."""
    if not isinstance(config, InsensitiveConstraintConfig):
        return residual
    if config.name == "norm1_eps":
        size = residual.abs().sum(dim=1, keepdim=True)
        return residual * (1 - config.eps / size.clamp(min=1e-30)).relu()
    return lin_eps(residual, config.eps)


@constraint("abs")
def absolute(residual: Tensor, config: ConstraintConfig) -> Tensor:
    return residual.abs()


@constraint("abs_eps", InsensitiveConstraintConfig)
def insensitive_abs(residual: Tensor, config: InsensitiveConstraintConfig) -> Tensor:
    return (residual.abs() - config.eps).relu()


@constraint("norm1_eps", InsensitiveConstraintConfig)
def insensitive_norm1(residual: Tensor, config: InsensitiveConstraintConfig) -> Tensor:
    """One value per node."""
    return (residual.abs().sum(dim=1, keepdim=True) - config.eps).relu()


@constraint("squared")
def squared(residual: Tensor, config: ConstraintConfig) -> Tensor:
    # Not `square`, whose gradient holds two more matrices of this size.
    return residual * residual
