"""The free variables of Lagrangian propagation: states x and multipliers lambda of one batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import Network


@dataclass
class Variables:
    """x and lambda of every layer, lowest first; leaves of the graph of the Lagrangian."""

    states: list[Tensor]
    multipliers: list[Tensor]

    @classmethod
    def start(cls, network: Network, batch: GraphBatch, config: LagrangianConfig) -> Variables:
        """x = 0 and lambda at its start value: one a node, or one an element."""
        states = network.zero_states(batch)
        per_element = config.multiplier == "element" or config.updates == "one_shot"
        start = 0.0 if config.updates == "one_shot" else config.multiplier_start
        return cls(
            states=[x.requires_grad_() for x in states],
            multipliers=[
                torch.full_like(x if per_element else x[:, :1], start).requires_grad_()
                for x in states
            ],
        )

    def state_dict(self) -> dict[str, list[Tensor]]:
        return {
            "states": [x.detach().clone() for x in self.states],
            "multipliers": [m.detach().clone() for m in self.multipliers],
        }

    def load_state_dict(self, saved: dict[str, list[Tensor]]) -> None:
        with torch.no_grad():
            for mine, theirs in (
                (self.states, saved["states"]),
                (self.multipliers, saved["multipliers"]),
            ):
                for variable, value in zip(mine, theirs, strict=True):
                    variable.copy_(value)
