"""What the fit loop asks of a network in training, whatever propagates its states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import ContractiveConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.contraction import GainProbe, project
from lpgnn_cli.model.network import Network
from lpgnn_cli.training.evaluation import Evaluation, Part
from lpgnn_cli.training.optim import build_optimiser, scale_lr


class Learner(ABC):
    """A network, the parts of one unit, and everything that moves between epochs."""

    def __init__(self, network: Network, parts: dict[str, Part], config: TrainConfig) -> None:
        self.network = network
        self.parts = parts
        self.config = config
        self.theta = build_optimiser(
            config.optim,
            network.parameters(),
            config.lr.theta,
            weight_decay=config.optim.weight_decay,
        )
        propagation = config.propagation
        self.contraction = propagation if isinstance(propagation, ContractiveConfig) else None
        self.probe: GainProbe | None = None
        if self.contraction is not None and self.contraction.contraction == "penalty":
            batch = parts["train"].batch
            self.probe = GainProbe(network, batch).to(batch.features)

    @abstractmethod
    def train_epoch(self, epoch: int, batch: GraphBatch) -> dict[str, Tensor]:
        """One pass over the training part, whose batch may come with flipped signs."""

    @abstractmethod
    def follow(self, name: str) -> None:
        """Let the states of an evaluation part follow theta for one epoch."""

    @abstractmethod
    def evaluate(self, name: str) -> Evaluation:
        """Scores and residuals of a part as it stands, in evaluation mode."""

    @abstractmethod
    def embedding(self) -> Tensor:
        """What f_r reads of every training node at the last layer."""

    def penalty(self, states: list[Tensor], transits: list[Tensor], batch: GraphBatch) -> Tensor:
        """Contraction penalty: strength times the mean squared excess of gain over its bound."""
        if self.probe is None or self.contraction is None:
            return batch.features.new_zeros(())
        gain = self.probe.gain(states, transits, differentiable=True)
        excess = (gain - self.contraction.contraction_bound).clamp(min=0)
        return self.contraction.contraction_strength * excess.square().mean()

    def step_theta(self) -> None:
        """Descend on theta, and keep the contraction if it is asked of the weights."""
        self.theta.step()
        if self.contraction is not None and self.contraction.contraction == "spectral":
            project(self.network, self.contraction.contraction_bound)

    def scale_lr(self, scale: float) -> None:
        scale_lr(self.theta, scale)

    def describe_divergence(self) -> str:
        """Where the numbers went wrong."""
        for name, parameter in self.network.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                return f"weight {name} is not finite"
        return "all weights are finite"

    def state_dict(self) -> dict[str, Any]:
        saved: dict[str, Any] = {
            "network": self.network.state_dict(),
            "theta": self.theta.state_dict(),
        }
        if self.probe is not None:
            saved["probe"] = self.probe.state_dict()
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.network.load_state_dict(saved["network"])
        self.theta.load_state_dict(saved["theta"])
        if self.probe is not None:
            self.probe.load_state_dict(saved["probe"])
