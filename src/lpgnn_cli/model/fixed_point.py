"""GNN*: the states as the fixed point of f_a, found anew in every forward pass."""

from __future__ import annotations

import torch
from torch import Tensor

from lpgnn_cli.config.model import FixedPointConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import Network, graph_violation
from lpgnn_cli.model.transitions import Transition


def fixed_points(
    network: Network, batch: GraphBatch, config: FixedPointConfig
) -> tuple[list[Tensor], list[Tensor]]:
    """States and transitions of every layer, solved from the lowest layer up."""
    states: list[Tensor] = []
    transits: list[Tensor] = []
    for transition, start in zip(network.transitions, network.zero_states(batch), strict=True):
        assert isinstance(transition, Transition)
        label = network.label(len(transits), transits, batch)
        if config.backward == "implicit":
            with torch.no_grad():
                state = _iterate(transition, start, label, batch, config)
            transit = _with_implicit_gradient(transition, state, label, batch, config)
            # x* = f_a(x*): whoever reads x sends its gradient through the same adjoint.
            state = state + (transit - transit.detach())
        else:
            state = _iterate(transition, start, label, batch, config)
            transit = transition(state, label, batch)
        states.append(state)
        transits.append(transit)
    return states, transits


def _iterate(
    transition: Transition, x: Tensor, label: Tensor, batch: GraphBatch, config: FixedPointConfig
) -> Tensor:
    """x <- x + damping (f_a(x) - x); each graph rests once it has converged, whatever others do."""
    for _ in range(config.max_iterations):
        step = transition(x, label, batch) - x
        moving = graph_violation([step.detach()], batch) > config.tolerance
        if not bool(moving.any()):
            break
        x = x + config.damping * step * moving[batch.graph_of_node, None]
    return x


def _with_implicit_gradient(
    transition: Transition,
    state: Tensor,
    label: Tensor,
    batch: GraphBatch,
    config: FixedPointConfig,
) -> Tensor:
    """f_a(x*), whose backward pass solves the adjoint fixed point g = dL/df + J^T g."""
    transit: Tensor = transition(state, label, batch)
    if not transit.requires_grad:
        return transit
    at = state.detach().requires_grad_()
    linearised = transition(at, label.detach(), batch)

    def adjoint(incoming: Tensor) -> Tensor:
        g = incoming
        for _ in range(config.max_iterations):
            (pulled,) = torch.autograd.grad(linearised, at, g, retain_graph=True)
            change = incoming + pulled - g
            g = g + config.damping * change
            if float(change.abs().max()) <= config.tolerance * float(incoming.abs().max()):
                break
        return g

    transit.register_hook(adjoint)
    return transit
