"""How often f_a is evaluated: what an epoch costs, whatever machine it runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from lpgnn_cli.metrics import TRANSITIONS, TRANSITIONS_BACKWARD
from lpgnn_cli.model.network import Network


class TransitionCounter:
    """Counts passes through the transitions of a network, forward and backward, while it is asked
    to; one through some of the nodes counts as that share."""

    def __init__(self, network: Network) -> None:
        self.nodes = 0
        self.forward = self.backward = 0.0
        for transition in network.transitions:
            transition.register_forward_hook(self._passed)

    @contextmanager
    def counting(self, nodes: int) -> Iterator[TransitionCounter]:
        """Inside, a pass through so many nodes counts as one."""
        self.nodes, self.forward, self.backward = nodes, 0.0, 0.0
        try:
            yield self
        finally:
            self.nodes = 0

    def metrics(self) -> dict[str, float]:
        return {
            TRANSITIONS.name: self.forward + self.backward,
            TRANSITIONS_BACKWARD.name: self.backward,
        }

    def _passed(self, _module: object, _inputs: Any, output: Tensor) -> None:
        rows = output.shape[0]
        if not self.nodes:
            return
        self.forward += rows / self.nodes

        def returned(_gradient: Tensor) -> None:
            if self.nodes:
                self.backward += rows / self.nodes

        if output.requires_grad:
            output.register_hook(returned)
