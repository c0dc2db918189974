"""Ordinary training, for propagations whose states are computed in the forward pass."""

from __future__ import annotations

import torch
from torch import Tensor

from lpgnn_cli.config.model import FixedPointConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.fixed_point import fixed_points
from lpgnn_cli.model.network import residuals
from lpgnn_cli.training.evaluation import Evaluation, accuracy, violation
from lpgnn_cli.training.learner import Learner


class BackpropLearner(Learner):
    """GNN* (`fixed_point`) and the layered networks (`layers`)."""

    def propagate(self, batch: GraphBatch) -> tuple[list[Tensor], list[Tensor]]:
        """States and transitions of every layer; a layered network has no states of its own."""
        if isinstance(self.config.propagation, FixedPointConfig):
            return fixed_points(self.network, batch, self.config.propagation)
        no_state = batch.features.new_zeros(batch.num_nodes, 0)
        transits: list[Tensor] = []
        for layer, transition in enumerate(self.network.transitions):
            label = self.network.label(layer, transits, batch)
            transits.append(transition(no_state, label, batch))
        return transits, transits

    def train_epoch(self, epoch: int, batch: GraphBatch) -> dict[str, Tensor]:
        self.network.train()
        part = self.parts["train"]
        states, transits = self.propagate(batch)
        scores = self.network.read(states, transits, batch)
        loss = part.loss(scores, self.config.propagation.loss_reduction)
        objective = loss + self._contraction_penalty(states, batch)
        self.theta.zero_grad()
        objective.backward()
        self.step_theta()
        figures = {
            "train/accuracy": accuracy(part.scores(scores.detach()), part.targets),
            "train/loss": part.loss(scores.detach(), "mean"),
            "train/lagrangian": objective.detach(),
        }
        return figures | {
            f"train/{k}": v for k, v in violation(self._residuals(states, transits)).items()
        }

    def follow(self, name: str) -> None:
        """Nothing persists between epochs."""

    @torch.no_grad()
    def evaluate(self, name: str) -> Evaluation:
        self.network.eval()
        part = self.parts[name]
        states, transits = self.propagate(part.batch)
        return Evaluation(
            part=part,
            scores=self.network.read(states, transits, part.batch),
            residuals=self._residuals(states, transits),
        )

    @torch.no_grad()
    def embedding(self) -> Tensor:
        self.network.eval()
        _, transits = self.propagate(self.parts["train"].batch)
        return self.network.readout.config.scale * transits[-1]

    def _residuals(self, states: list[Tensor], transits: list[Tensor]) -> list[Tensor]:
        if not isinstance(self.config.propagation, FixedPointConfig):
            return []
        return [r.detach() for r in residuals(states, transits)]

    def _contraction_penalty(self, states: list[Tensor], batch: GraphBatch) -> Tensor:
        if self.probe is None:
            return batch.features.new_zeros(())
        at = [x.detach().requires_grad_() for x in states]
        return self.penalty(at, self.network.transit(at, batch), batch)
