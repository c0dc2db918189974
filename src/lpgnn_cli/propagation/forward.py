"""Propagations whose states are computed in the forward pass, and ordinary training of them."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from lpgnn_cli.config.model import InferenceConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.propagation.base import Outcome, Propagation, Step
from lpgnn_cli.propagation.solvers import SolveStats


class Forward(Propagation):
    """Nothing persists between epochs: training and test phase compute states in the same way."""

    @abstractmethod
    def propagate(self, batch: GraphBatch) -> tuple[list[Tensor], list[Tensor]]:
        """States and transitions of every layer."""

    def residuals(self, states: list[Tensor], transits: list[Tensor]) -> list[Tensor]:
        """x - f_a(x) of every layer, where it is asked to vanish."""
        return []

    def train_step(self, epoch: int, part: Part, graphs: Tensor | None = None) -> Step:
        self.network.train()
        states, transits = self.propagate(part.batch)
        scores = self.network.read(states, transits, part.batch)
        loss = supervised_loss(part, scores, self.config.propagation.loss_reduction)
        objective = loss + self.regulariser(states, part.batch, graphs)
        self.theta.zero_grad()
        objective.backward()
        self.step_theta()
        return Step.of(scores, objective, self.residuals(states, transits))

    def regulariser(self, states: list[Tensor], batch: GraphBatch, graphs: Tensor | None) -> Tensor:
        """What is added to the loss."""
        return batch.features.new_zeros(())

    def look(self, name: str, batch: GraphBatch) -> Outcome:
        states, transits = self.propagate(batch)
        return Outcome(
            states=states,
            transits=transits,
            scores=self.network.read(states, transits, batch),
            residuals=self.residuals(states, transits),
        )

    def infer(
        self, batch: GraphBatch, inference: InferenceConfig
    ) -> tuple[Outcome, SolveStats | None]:
        return self.evaluate("unseen", batch), None
