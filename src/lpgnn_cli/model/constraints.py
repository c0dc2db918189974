"""The functions G that relax the constraint x = f_a(x); all of them act element by element."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from lpgnn_cli.config.model import ConstraintConfig, InsensitiveConstraintConfig

Constraint = Callable[[Tensor], Tensor]


def build_constraint(config: ConstraintConfig) -> Constraint:
    if isinstance(config, InsensitiveConstraintConfig):
        eps = config.eps
        if config.name == "lin_eps":
            return lambda residual: lin_eps(residual, eps)
        return lambda residual: abs_eps(residual, eps)
    return {"lin": lin, "abs": absolute, "squared": squared}[config.name]


def lin(residual: Tensor) -> Tensor:
    return residual


def lin_eps(residual: Tensor, eps: float) -> Tensor:
    """Zero on all of [-eps, eps], the signed distance to that band beyond it.

    It is the printed max(r, eps) - max(-r, eps), whose derivative at r = ±eps would depend on how
    a library splits ties of max; here it is 0 on the closed band.
    """
    return residual - residual.clamp(-eps, eps)


def absolute(residual: Tensor) -> Tensor:
    return residual.abs()


def abs_eps(residual: Tensor, eps: float) -> Tensor:
    return (residual.abs() - eps).relu()


def squared(residual: Tensor) -> Tensor:
    return residual.square()
