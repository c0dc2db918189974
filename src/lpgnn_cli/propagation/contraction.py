"""Keeping f_a a contraction in x, and measuring whether it is one.

The gain of a graph is |J^T u| / |u| for J = df_a/dx and a probe u that power iteration turns
towards the dominant direction: above 1, the fixed point repels the iteration x <- f_a(x).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import ContractiveConfig, PropagationConfig
from lpgnn_cli.data.batch import GraphBatch, ranges
from lpgnn_cli.model.network import Network
from lpgnn_cli.model.transitions import Transition


class Contraction:
    """What is done so that f_a contracts: a penalty on its gain, or a bound on its weights."""

    def __init__(
        self, config: ContractiveConfig, network: Network, batch: GraphBatch | None
    ) -> None:
        self.config = config
        self.gain = None
        if config.contraction == "penalty" and batch is not None:
            self.gain = Gain(network.zero_states(batch))
            self.graph_ptr = batch.graph_ptr

    @classmethod
    def wanted(
        cls, config: PropagationConfig, network: Network, batch: GraphBatch | None
    ) -> Contraction | None:
        """None where the propagation has no such setting."""
        return cls(config, network, batch) if isinstance(config, ContractiveConfig) else None

    def penalty(
        self,
        states: Sequence[Tensor],
        transits: Sequence[Tensor],
        batch: GraphBatch,
        graphs: Tensor | None,
    ) -> Tensor:
        """Strength times the mean squared excess of the gain over its bound."""
        if self.gain is None:
            return batch.features.new_zeros(())
        ptr = self.graph_ptr
        rows = None if graphs is None else ranges(ptr[graphs], ptr[graphs + 1])
        gain = self.gain.step(states, transits, batch, rows, differentiable=True)
        excess = (gain - self.config.contraction_bound).clamp(min=0)
        return self.config.contraction_strength * excess.square().mean()

    @torch.no_grad()
    def project(self, network: Network) -> None:
        """Scale the weights that act on x down to a spectral norm within the bound."""
        if self.config.contraction != "spectral":
            return
        for transition in network.transitions:
            assert isinstance(transition, Transition)
            for weight in transition.state_weights():
                # A diverged weight has no norm; it is left to who watches the Lagrangian.
                finite = torch.nan_to_num(weight, nan=0.0, posinf=0.0, neginf=0.0)
                norm = torch.linalg.matrix_norm(finite, ord=2)
                weight.mul_((self.config.contraction_bound / norm).clamp(max=1.0))

    def state_dict(self) -> dict[str, Any]:
        return {"probes": [] if self.gain is None else self.gain.probes}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        if self.gain is not None:
            for probe, value in zip(self.gain.probes, saved["probes"], strict=True):
                probe.copy_(value)


class Gain:
    """Power iteration on J^T, graph by graph, that goes on from call to call."""

    def __init__(self, zero_states: Sequence[Tensor]) -> None:
        self.probes = [torch.randn_like(x) for x in zero_states]

    def step(
        self,
        states: Sequence[Tensor],
        transits: Sequence[Tensor],
        batch: GraphBatch,
        rows: Tensor | None = None,
        *,
        differentiable: bool = False,
    ) -> Tensor:
        """One step: the gain (G,) of each graph at these states, which must require grad."""
        probes = self.probes if rows is None else [probe[rows] for probe in self.probes]
        pulled = torch.autograd.grad(
            list(transits),
            list(states),
            # Copies: the graph of a differentiable gain keeps them, and the probes move on below.
            grad_outputs=[
                probe.to(f.dtype, copy=True) for probe, f in zip(probes, transits, strict=True)
            ],
            create_graph=differentiable,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        before, after = _norms(probes, batch), _norms(pulled, batch)
        with torch.no_grad():
            scale = (1.0 / after.clamp(min=1e-12))[batch.graph_of_node, None]
            for probe, w in zip(self.probes, pulled, strict=True):
                probe[slice(None) if rows is None else rows] = w * scale
        # A graph without arcs pulls its probe to zero, and its gain is zero from then on.
        return torch.where(before > 1e-9, after / before, torch.zeros_like(after))

    @classmethod
    def estimate(
        cls,
        transit: Callable[[list[Tensor]], list[Tensor]],
        states: Sequence[Tensor],
        batch: GraphBatch,
        iterations: int = 30,
    ) -> Tensor:
        """The gain of each graph at `states` after some power iterations, shape (G,)."""
        at = [x.detach().requires_grad_() for x in states]
        with torch.enable_grad():
            transits = transit(at)
        # A probe of its own randomness: the same states have the same gain, and nobody else's
        # draws change.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            power = cls(at)
        gain = at[0].new_zeros(batch.num_graphs)
        for _ in range(iterations):
            gain = power.step(at, transits, batch).detach()
        return gain


def _norms(vectors: Sequence[Tensor], batch: GraphBatch) -> Tensor:
    squares = torch.cat([v.square() for v in vectors], dim=1).sum(dim=1)
    total = squares.new_zeros(batch.num_graphs)
    return total.index_add(0, batch.graph_of_node, squares).clamp(min=1e-24).sqrt()
