"""GNN*: the states as the fixed point of f_a, found anew in every forward pass."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lpgnn_cli.config.model import FixedPointConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import Network
from lpgnn_cli.propagation.base import propagation
from lpgnn_cli.propagation.forward import Forward
from lpgnn_cli.propagation.solvers import (
    Anderson,
    Damped,
    Function,
    Rule,
    Solution,
    residuals,
    solve,
)


@propagation("fixed_point", FixedPointConfig)
class FixedPoint(Forward):
    """Layers are solved from the lowest one up, each to convergence."""

    def __init__(
        self, network: Network, config: TrainConfig, sets: Mapping[str, GraphBatch]
    ) -> None:
        super().__init__(network, config, sets)
        assert isinstance(config.propagation, FixedPointConfig)
        self.settings = config.propagation

    def propagate(self, batch: GraphBatch) -> tuple[list[Tensor], list[Tensor]]:
        states: list[Tensor] = []
        transits: list[Tensor] = []
        for layer, start in enumerate(self.network.zero_states(batch)):
            label = self.network.label(layer, transits, batch)

            def f(x: list[Tensor], layer: int = layer, label: Tensor = label) -> list[Tensor]:
                return [self.network.transitions[layer](x[0], label, batch)]

            if self.settings.backward == "implicit":
                with torch.no_grad():
                    (state,) = self.solve(f, [start], batch).states
                transit = self._with_implicit_gradient(f, state, batch)
                # x* = f_a(x*): whoever reads x sends its gradient through the same adjoint.
                state = state + (transit - transit.detach())
            else:
                (state,) = self.solve(f, [start], batch).states
                (transit,) = f([state])
            states.append(state)
            transits.append(transit)
        return states, transits

    def solve(self, f: Function, x: list[Tensor], batch: GraphBatch) -> Solution:
        settings = self.settings
        return solve(
            f,
            x,
            batch,
            settings.tolerance,
            settings.max_iterations,
            self.rule(batch),
            differentiable=True,
        )

    def rule(self, batch: GraphBatch) -> Rule:
        settings = self.settings
        if settings.solver == "anderson":
            return Anderson(batch, settings.damping, settings.memory)
        return Damped(settings.damping)

    def _with_implicit_gradient(self, f: Function, state: Tensor, batch: GraphBatch) -> Tensor:
        """f_a(x*), whose backward pass solves the adjoint fixed point g = dL/df + J^T g."""
        (transit,) = f([state])
        if not transit.requires_grad:
            return transit
        at = state.detach().requires_grad_()
        (linearised,) = f([at])

        def adjoint(incoming: Tensor) -> Tensor:
            def g_to(g: list[Tensor]) -> list[Tensor]:
                (pulled,) = torch.autograd.grad(linearised, at, g[0], retain_graph=True)
                return [incoming + pulled]

            settings = self.settings
            found = solve(
                g_to,
                [incoming],
                batch,
                settings.tolerance * float(incoming.abs().max()),
                settings.max_iterations,
                self.rule(batch),
                measure=lambda change: change[0].abs().max().expand(batch.num_graphs),
                differentiable=True,
            )
            (g,) = found.states
            # Its last product is at hand, so the step it allows is free.
            return g if found.residual is None else g - settings.damping * found.residual[0]

        transit.register_hook(adjoint)
        return transit

    def residuals(self, states: list[Tensor], transits: list[Tensor]) -> list[Tensor]:
        return [r.detach() for r in residuals(states, transits)]

    def regulariser(self, states: list[Tensor], batch: GraphBatch, graphs: Tensor | None) -> Tensor:
        if self.bound is None or self.bound.gain is None:
            return super().regulariser(states, batch, graphs)
        at = [x.detach().requires_grad_() for x in states]
        return self.penalty(at, self.transit(at, batch), batch, graphs)
