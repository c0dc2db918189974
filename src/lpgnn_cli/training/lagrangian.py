"""Lagrangian propagation: weights, states and multipliers in one saddle-point search.

min over theta, x and max over lambda of  loss(f_r(f_a(x)), y) + sum_v lambda_v G(x_v - f_a,v)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import Network, residuals
from lpgnn_cli.training.evaluation import Evaluation, Part, accuracy, violation
from lpgnn_cli.training.learner import Learner
from lpgnn_cli.training.updates import (
    FrozenUpdates,
    GradientUpdates,
    IterationUpdates,
    StateUpdates,
    constraint_term,
    inference_updates,
)


class LagrangianLearner(Learner):
    """Common to both update rules: evaluation parts whose states follow by the test phase."""

    updates: StateUpdates

    def __init__(self, network: Network, parts: dict[str, Part], config: TrainConfig) -> None:
        super().__init__(network, parts, config)
        assert isinstance(config.propagation, LagrangianConfig)
        self.propagation = config.propagation
        # A part that shares the training graph (transductive) shares its states too.
        self.followers = {
            name: inference_updates(network, part.batch, config)
            for name, part in parts.items()
            if part.batch is not parts["train"].batch
        }

    def follow(self, name: str) -> None:
        if name in self.followers:
            self.network.eval()
            for _ in range(self.config.inference.steps_per_epoch):
                self.followers[name].relax()

    def states_of(self, name: str) -> list[Tensor]:
        """The persistent states of a part."""
        return self.followers.get(name, self.updates).variables.states

    def evaluate(self, name: str) -> Evaluation:
        return self.evaluate_at(name, self.states_of(name))

    @torch.no_grad()
    def evaluate_at(self, name: str, x: list[Tensor]) -> Evaluation:
        """Scores and residuals of a part at states that were found elsewhere."""
        self.network.eval()
        part = self.parts[name]
        transits = self.network.transit(x, part.batch)
        return Evaluation(
            part=part,
            scores=self.network.read(x, transits, part.batch),
            residuals=[] if self.propagation.states == "frozen" else residuals(x, transits),
        )

    @torch.no_grad()
    def embedding(self) -> Tensor:
        self.network.eval()
        x, readout = self.states_of("train"), self.network.readout.config
        if readout.source == "transition":
            x = self.network.transit(x, self.parts["train"].batch)
        return readout.scale * x[-1]

    def figures(
        self, part: Part, scores: Tensor, loss: Tensor, lagrangian: Tensor, residual: list[Tensor]
    ) -> dict[str, Tensor]:
        """What is logged of a training pass."""
        norms = [m.detach().norm() for m in self.updates.variables.multipliers]
        figures = {
            "train/accuracy": accuracy(part.scores(scores.detach()), part.targets),
            "train/loss": part.loss(scores.detach(), "mean"),
            "train/lagrangian": lagrangian.detach(),
        }
        if self.propagation.states == "free":
            figures |= {f"train/{k}": v for k, v in violation(residual).items()}
            figures["train/multiplier_norm"] = torch.stack(norms).norm()
            figures |= {f"train/layer{k}/multiplier_norm": n for k, n in enumerate(norms)}
        return figures

    def scale_lr(self, scale: float) -> None:
        super().scale_lr(scale)
        for updates in (self.updates, *self.followers.values()):
            updates.scale_lr(scale)

    def describe_divergence(self) -> str:
        batches = [u.variables for u in (self.updates, *self.followers.values())]
        states = [v.states for v in batches]
        sizes = [max(map(_largest, layer)) for layer in zip(*states, strict=True)]
        layer = max(range(len(sizes)), key=sizes.__getitem__)
        multiplier = max(_largest(m) for v in batches for m in v.multipliers)
        return (
            f"{super().describe_divergence()}, largest state {sizes[layer]:.3g} in layer {layer}, "
            f"largest multiplier {multiplier:.3g}"
        )

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "updates": self.updates.state_dict(),
            "followers": {name: u.state_dict() for name, u in self.followers.items()},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        self.updates.load_state_dict(saved["updates"])
        for name, updates in self.followers.items():
            updates.load_state_dict(saved["followers"][name])


class GradientLearner(LagrangianLearner):
    """The paper's rule: theta and x descend, lambda ascends, all from one backward pass."""

    def __init__(self, network: Network, parts: dict[str, Part], config: TrainConfig) -> None:
        super().__init__(network, parts, config)
        self.updates: GradientUpdates = GradientUpdates(network, parts["train"].batch, config)

    def train_epoch(self, epoch: int, batch: GraphBatch) -> dict[str, Tensor]:
        self.network.train()
        settings, part = self.propagation, self.parts["train"]
        x, multipliers = self.updates.variables.states, self.updates.variables.multipliers

        transits = self.network.transit(x, batch)
        residual = residuals(x, transits)
        scores = self.network.read(x, transits, batch)
        loss = part.loss(scores, settings.loss_reduction)
        constraints = constraint_term(
            residual, multipliers, self.updates.g, settings.rho, settings.constraint_reduction
        )
        lagrangian = loss + constraints

        self.zero_grad()
        if not settings.supervise_states:
            of_constraints = torch.autograd.grad(constraints, x, retain_graph=True)
        (lagrangian + self.penalty(x, transits, batch)).backward()
        if not settings.supervise_states:
            for state, gradient in zip(x, of_constraints, strict=True):
                state.grad = gradient

        if epoch > settings.warmup:
            self.step_theta()
            self.updates.multiplier_optimiser.step()
        self.updates.state_optimiser.step()
        return self.figures(part, scores, loss, lagrangian, residual)

    def zero_grad(self) -> None:
        self.theta.zero_grad()
        self.updates.state_optimiser.zero_grad()
        self.updates.multiplier_optimiser.zero_grad()


class OneShotLearner(LagrangianLearner):
    """The saddle-point conditions themselves, one step each from one forward and one backward pass.

    For G(r) = r and a multiplier an element, the saddle of  loss + <lambda, f_a(x) - x>  is where
    x = f_a(x) and lambda = J^T (lambda + dloss/df_a): states never see a label.
    """

    def __init__(self, network: Network, parts: dict[str, Part], config: TrainConfig) -> None:
        super().__init__(network, parts, config)
        self.updates: IterationUpdates = IterationUpdates(
            network, parts["train"].batch, config, self.propagation.damping
        )

    def train_epoch(self, epoch: int, batch: GraphBatch) -> dict[str, Tensor]:
        self.network.train()
        settings, part = self.propagation, self.parts["train"]
        x, multipliers = self.updates.variables.states, self.updates.variables.multipliers

        transits = self.network.transit(x, batch)
        residual = residuals(x, transits)
        scores = self.network.read(x, transits, batch)
        loss = part.loss(scores, settings.loss_reduction)
        adjoint = sum(
            ((m.detach() * f).sum() for m, f in zip(multipliers, transits, strict=True)),
            start=loss.new_zeros(()),
        )

        self.theta.zero_grad()
        for state in x:
            state.grad = None
        (loss + adjoint + self.penalty(x, transits, batch)).backward()

        with torch.no_grad():
            lagrangian = loss - sum(
                (m * r).sum() for m, r in zip(multipliers, residual, strict=True)
            )
            for state, multiplier, difference in zip(x, multipliers, residual, strict=True):
                if epoch > settings.warmup and state.grad is not None:
                    multiplier.add_(settings.damping * (state.grad - multiplier))
                state.sub_(settings.damping * difference)
        if epoch > settings.warmup:
            self.step_theta()
        return self.figures(part, scores, loss, lagrangian, residual)


class FrozenLearner(LagrangianLearner):
    """The control: x stays zero and only theta learns; nothing diffuses beyond one hop a layer."""

    def __init__(self, network: Network, parts: dict[str, Part], config: TrainConfig) -> None:
        super().__init__(network, parts, config)
        self.updates: FrozenUpdates = FrozenUpdates(network, parts["train"].batch, config)

    def train_epoch(self, epoch: int, batch: GraphBatch) -> dict[str, Tensor]:
        self.network.train()
        part = self.parts["train"]
        x = [state.detach() for state in self.updates.variables.states]
        scores = self.network.read(x, self.network.transit(x, batch), batch)
        loss = part.loss(scores, self.propagation.loss_reduction)
        self.theta.zero_grad()
        loss.backward()
        self.step_theta()
        return self.figures(part, scores, loss, loss, [])


def _largest(values: Tensor) -> float:
    """The largest magnitude; what is no number any more counts as infinite."""
    return float(values.detach().abs().nan_to_num(nan=torch.inf, posinf=torch.inf).max())
