"""Keeping the gain of f_a in x within a bound, and measuring it.

The gain of a graph is |J^T u| / |u| for J = df_a/dx and a probe u that power iteration turns
towards the dominant direction: above 1, the fixed point repels the iteration x <- f_a(x).

A layer sees those below it and none above, so that each for itself decides whether fixed points
attract: J is that of the layers one by one, and what they hand up does not count. All together they
stretch differences on the way, and not in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import ContractiveConfig, PropagationConfig
from lpgnn_cli.data.batch import GraphBatch, ranges
from lpgnn_cli.model.network import Network

# Of an estimate.
ITERATIONS = 30
# J^T u, layer by layer.
Pull = Callable[[Sequence[Tensor]], Sequence[Tensor]]


class GainBound:
    """What is done so that f_a contracts: its weights are bounded, or its gain is penalised."""

    def __init__(
        self, config: ContractiveConfig, network: Network, batch: GraphBatch | None
    ) -> None:
        assert config.gain is not None
        self.bound = config.gain
        self.strength = config.gain_penalty
        self.transitions = list(network.transitions)
        self.by_weights = config.gain_held_by == "weights"
        self.gain = None
        if self.by_weights:
            for transition in self.transitions:
                transition.keep_gain(config.gain)
        elif batch is not None:
            self.gain = Gain(network.zero_states(batch))
            self.graph_ptr = batch.graph_ptr

    @classmethod
    def wanted(
        cls, config: PropagationConfig, network: Network, batch: GraphBatch | None
    ) -> GainBound | None:
        """None where no bound is asked for, or there is no state to have a gain."""
        if not isinstance(config, ContractiveConfig) or config.gain is None:
            return None
        return cls(config, network, batch)

    @property
    def is_proved(self) -> bool:
        """Whether the weights alone show that the gain is below 1."""
        proved = all(transition.state_gain() is not None for transition in self.transitions)
        return self.by_weights and self.bound < 1 and proved

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
        return self.strength * (gain - self.bound).clamp(min=0).square().mean()

    def project(self) -> None:
        if self.by_weights:
            for transition in self.transitions:
                transition.project()

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
        pulled = pull_back(probes, transits, states, differentiable=differentiable)
        return self._turn(probes, pulled, batch, slice(None) if rows is None else rows)

    def _turn(
        self,
        probes: Sequence[Tensor],
        pulled: Sequence[Tensor],
        batch: GraphBatch,
        rows: Tensor | slice,
    ) -> Tensor:
        """Turn the probes to where J^T pulls them; the gain of each graph."""
        before, after = _norms(probes, batch), _norms(pulled, batch)
        with torch.no_grad():
            scale = (1.0 / after.clamp(min=1e-12))[batch.graph_of_node, None]
            for probe, w in zip(self.probes, pulled, strict=True):
                probe[rows] = w * scale
        # A graph without arcs pulls its probe to zero, and its gain is zero from then on.
        return torch.where(before > 1e-9, after / before, torch.zeros_like(after))

    @classmethod
    def estimate(
        cls,
        transit: Callable[[list[Tensor]], list[Tensor]],
        states: Sequence[Tensor],
        batch: GraphBatch,
        iterations: int = ITERATIONS,
    ) -> Tensor:
        """The gain of each graph at `states` after some power iterations, shape (G,)."""
        at = [x.detach().requires_grad_() for x in states]
        with torch.enable_grad():
            transits = transit(at)
        power = cls._for_estimates(at)
        gain = at[0].new_zeros(batch.num_graphs)
        for _ in range(iterations):
            gain = power.step(at, transits, batch).detach()
        return gain

    @classmethod
    def by_products(
        cls, pull: Pull, states: Sequence[Tensor], batch: GraphBatch, iterations: int = ITERATIONS
    ) -> Tensor:
        """The same estimate from a function that gives J^T u for any u."""
        power = cls._for_estimates(states)
        gain = states[0].new_zeros(batch.num_graphs)
        for _ in range(iterations):
            gain = power._turn(power.probes, pull(power.probes), batch, slice(None))
        return gain

    @classmethod
    def _for_estimates(cls, states: Sequence[Tensor]) -> Gain:
        """With probes of their own randomness: the same states have the same gain, and nobody
        else's draws change."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return cls(states)


def pull_back(
    probes: Sequence[Tensor],
    transits: Sequence[Tensor],
    states: Sequence[Tensor],
    *,
    differentiable: bool = False,
) -> list[Tensor]:
    """J^T u, layer by layer; the states must require grad."""
    pulled: list[Tensor] = []
    for probe, transit, state in zip(probes, transits, states, strict=True):
        # A copy: the graph of a differentiable gain keeps it, and the probe moves on.
        along = (probe.to(transit.dtype, copy=True) * transit).sum()
        pulled += torch.autograd.grad(
            along,
            [state],
            create_graph=differentiable,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
    return pulled


def _norms(vectors: Sequence[Tensor], batch: GraphBatch) -> Tensor:
    squares = torch.cat([v.square() for v in vectors], dim=1).sum(dim=1)
    total = squares.new_zeros(batch.num_graphs)
    return total.index_add(0, batch.graph_of_node, squares).clamp(min=1e-24).sqrt()
