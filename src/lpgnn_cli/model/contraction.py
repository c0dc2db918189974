"""Keeping f_a a contraction in x, and measuring whether it is one.

The gain of a graph is |J^T u| / |u| for J = df_a/dx and a probe u that power iteration turns
towards the dominant direction: above 1, the fixed point repels the iteration x <- f_a(x).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import Network
from lpgnn_cli.model.transitions import Transition


def project(network: Network, bound: float) -> None:
    """Scale the weights that act on x down to a spectral norm of at most `bound`."""
    with torch.no_grad():
        for transition in network.transitions:
            assert isinstance(transition, Transition)
            for weight in transition.state_weights():
                # A diverged weight has no norm; it is left to who watches the Lagrangian.
                finite = torch.nan_to_num(weight, nan=0.0, posinf=0.0, neginf=0.0)
                norm = torch.linalg.matrix_norm(finite, ord=2)
                weight.mul_((bound / norm).clamp(max=1.0))


class GainProbe(nn.Module):
    """Power iteration on J^T, graph by graph, that goes on from call to call."""

    def __init__(self, network: Network, batch: GraphBatch) -> None:
        super().__init__()
        self.batch = batch
        self.probes = nn.ParameterList(
            nn.Parameter(torch.randn_like(x), requires_grad=False)
            for x in network.zero_states(batch)
        )

    def gain(
        self, states: Sequence[Tensor], transits: Sequence[Tensor], *, differentiable: bool = False
    ) -> Tensor:
        """One step: the gain (G,) of each graph at these states, which must require grad."""
        pulled = torch.autograd.grad(
            list(transits),
            list(states),
            # Copies: the graph of a differentiable gain keeps them, and the probes move on below.
            grad_outputs=[
                probe.to(f.dtype, copy=True) for probe, f in zip(self.probes, transits, strict=True)
            ],
            create_graph=differentiable,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        before = self._norm(list(self.probes))
        after = self._norm(pulled)
        with torch.no_grad():
            scale = (1.0 / after.clamp(min=1e-12))[self.batch.graph_of_node, None]
            for probe, w in zip(self.probes, pulled, strict=True):
                probe.copy_(w * scale)
        # A graph without arcs pulls its probe to zero, and its gain is zero from then on.
        return torch.where(before > 1e-9, after / before, torch.zeros_like(after))

    def _norm(self, vectors: Sequence[Tensor]) -> Tensor:
        squares = torch.cat([v.square() for v in vectors], dim=1).sum(dim=1)
        total = squares.new_zeros(self.batch.num_graphs)
        return total.index_add(0, self.batch.graph_of_node, squares).clamp(min=1e-24).sqrt()


def estimate_gain(
    network: Network, states: Sequence[Tensor], batch: GraphBatch, iterations: int = 30
) -> Tensor:
    """The gain of each graph at `states` after some power iterations, shape (G,)."""
    at = [x.detach().requires_grad_() for x in states]
    with torch.enable_grad():
        transits = network.transit(at, batch)
    # A probe of its own randomness: the same states have the same gain, and nobody else's draws
    # change.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        probe = GainProbe(network, batch).to(at[0].device, at[0].dtype)
    gain = at[0].new_zeros(batch.num_graphs)
    for _ in range(iterations):
        gain = probe.gain(at, transits).detach()
    return gain
