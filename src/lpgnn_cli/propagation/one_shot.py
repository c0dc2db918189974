"""The saddle-point conditions of the Lagrangian themselves, followed one step per epoch.

For G(r) = r and a multiplier per element, the saddle of  loss + <lambda, f_a(x) - x>  is where

    x = f_a(x)    and    lambda = J^T (lambda + dloss/df_a),

so that lambda is the adjoint of the diffusion, and theta descends on  loss + <lambda, f_a(x)>:
the gradient that differentiation through the fixed point would give. States never see a label.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.model.mlp import row_lengths
from lpgnn_cli.propagation.base import Step
from lpgnn_cli.propagation.lagrangian import Lagrangian, update_rule
from lpgnn_cli.propagation.solvers import residuals, towards
from lpgnn_cli.propagation.variables import Variables


@update_rule("one_shot")
class OneShot(Lagrangian):
    """One forward and one backward pass of f_a per epoch.

    Multipliers are kept relative to the size of the state that they belong to, |x_v| lambda_v.
    Where a signal has just arrived it is weak, and the gradient of a loss that goes by its
    direction is as much larger: the multiplier itself may reach 1e20, the relative one stays put.
    """

    def start(self, batch: GraphBatch) -> Variables:
        return Variables.start(self.network.zero_states(batch), batch)

    def train_step(self, epoch: int, part: Part, graphs: Tensor | None = None) -> Step:
        self.network.train()
        settings, batch = self.settings, part.batch
        with self.variables.of(graphs) as now:
            x = now.states.values
            self.theta.zero_grad()
            now.zero_grad()

            transits = self.transit(x, batch)
            residual = residuals(x, transits)
            scores = self.network.read(x, transits, batch)
            loss = supervised_loss(part, scores, settings.loss_reduction)
            multipliers = absolute(now.multipliers.values, transits)
            adjoint = inner(multipliers, transits)

            (loss + adjoint + self.penalty(x, transits, batch, graphs)).backward()

            with torch.no_grad():
                lagrangian = loss - inner(multipliers, residual)
                if epoch > settings.warmup:
                    self.step_theta()
                    if settings.adjoint:
                        pulled = [relative(state, gradient(state)) for state in x]
                        now.multipliers.set(moved(now.multipliers.values, pulled, settings.damping))
                now.states.set(moved(x, transits, settings.damping))
        return Step.of(scores, lagrangian, residual)


def gradient(state: Tensor) -> Tensor:
    """What a backward pass left; zero where nothing reads the state."""
    return torch.zeros_like(state) if state.grad is None else state.grad


def inner(left: Sequence[Tensor], right: Sequence[Tensor]) -> Tensor:
    """The inner product over all layers."""
    products = [(a * b).sum() for a, b in zip(left, right, strict=True)]
    return sum(products, start=products[0].new_zeros(()))


@torch.no_grad()
def absolute(relative: Sequence[Tensor], transits: Sequence[Tensor]) -> list[Tensor]:
    """lambda_v of the relative multipliers; none where there is no state to move."""
    absolute = []
    for multiplier, transit in zip(relative, transits, strict=True):
        there, length = row_lengths(transit)
        # A factor per row is ten times as fast as a choice for every number.
        absolute.append(multiplier * torch.where(there, 1 / length, 0.0))
    return absolute


def relative(state: Tensor, multiplier: Tensor) -> Tensor:
    """|x_v| lambda_v."""
    there, length = row_lengths(state)
    return multiplier * torch.where(there, length, 0.0)


def moved(values: Sequence[Tensor], targets: Sequence[Tensor], damping: float) -> list[Tensor]:
    return [towards(x, target, damping) for x, target in zip(values, targets, strict=True)]
