"""Lagrangian propagation: weights, states and multipliers in one saddle-point search.

min over theta, x and max over lambda of  loss(f_r(f_a(x)), y) + sum_v lambda_v G(x_v - f_a,v)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from lpgnn_cli.config.model import InferenceConfig, LagrangianConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.metrics import MULTIPLIER_NORM, of_all
from lpgnn_cli.model.constraints import build_constraint
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.model.network import Network
from lpgnn_cli.propagation.base import Build, Outcome, Propagation, Pullback, Step, propagation
from lpgnn_cli.propagation.inference import Follower, inference_rule
from lpgnn_cli.propagation.influence import through_fixed_point
from lpgnn_cli.propagation.saddle import (
    constraint_term,
    differentiate,
    saddle_variables,
    step_states,
)
from lpgnn_cli.propagation.solvers import SolveStats, residuals, solve
from lpgnn_cli.propagation.variables import Variables


@propagation("lagrangian", LagrangianConfig)
def build_lagrangian(
    network: Network, config: TrainConfig, sets: Mapping[str, GraphBatch]
) -> Propagation:
    """By the rule of updates that the config asks for."""
    settings = config.propagation
    assert isinstance(settings, LagrangianConfig)
    rule = "frozen" if settings.states == "frozen" else settings.updates
    if config.optim.batch_nodes is not None:
        rule += " by blocks"
    return RULES[rule](network, config, sets)


# By the name of `propagation.updates`; each rule adds itself.
RULES: dict[str, Build] = {}
R = TypeVar("R", bound=Build)


def update_rule(name: str) -> Callable[[R], R]:
    """Class decorator: how states and multipliers move."""

    def add(build: R) -> R:
        RULES[name] = build
        return build

    return add


class Lagrangian(Propagation):
    """Common to all rules: variables of the training graphs, and evaluated graphs that follow."""

    persistent = True

    def __init__(
        self, network: Network, config: TrainConfig, sets: Mapping[str, GraphBatch]
    ) -> None:
        super().__init__(network, config, sets)
        assert isinstance(config.propagation, LagrangianConfig)
        self.settings = config.propagation
        self.hands_up_transition = self.settings.hand_up == "transition"
        self.training: dict[str, Variables] = {}
        self.followers: dict[str, Follower] = {}
        for name, batch in sets.items():
            if name == "train":
                self.training[name] = self.start(batch)
            # A set that shares the training graph (transductive) shares its states too.
            elif batch is not sets.get("train"):
                zero = network.zero_states(batch)
                rule = inference_rule(config, config.inference, zero, batch)
                self.followers[name] = Follower(rule, zero)

    @abstractmethod
    def start(self, batch: GraphBatch) -> Variables:
        """The variables of training graphs at their start."""

    @property
    def variables(self) -> Variables:
        """Those of the training graphs."""
        return self.training["train"]

    def follow(self, name: str, batch: GraphBatch) -> None:
        if name in self.followers:
            self.network.eval()
            steps = self.config.inference.steps_per_epoch
            self.followers[name].follow(lambda x: self.transit(x, batch), steps)

    def states_of(self, name: str) -> list[Tensor]:
        """The persistent states of a set."""
        if name in self.followers:
            return self.followers[name].states
        return self.variables.states.values

    def look(self, name: str, batch: GraphBatch) -> Outcome:
        return self.outcome(self.states_of(name), batch)

    def renew(self, batch: GraphBatch) -> Tensor:
        anew = torch.zeros_like(super().renew(batch))
        if self.settings.restart > 0:
            anew = torch.rand(batch.num_graphs, device=anew.device) < self.settings.restart
            self.variables.states.zero(anew[batch.graph_of_node])
        return anew

    def infer(
        self, batch: GraphBatch, inference: InferenceConfig
    ) -> tuple[Outcome, SolveStats | None]:
        self.network.eval()
        zero = self.network.zero_states(batch)
        rule = inference_rule(self.config, inference, zero, batch)
        with torch.no_grad():
            found = solve(
                lambda x: self.transit(x, batch),
                zero,
                batch,
                inference.tolerance,
                inference.steps,
                rule,
                relative=True,
            )
            return self.outcome(found.states, batch), found.stats

    def pullback(self, batch: GraphBatch, inference: InferenceConfig) -> Pullback | None:
        if not self.persistent:
            return super().pullback(batch, inference)
        found, _ = self.infer(batch, inference)
        labels = batch.features.detach().requires_grad_()
        x = [state.detach().requires_grad_() for state in found.states]
        with torch.enable_grad():
            labelled = batch.with_features(labels)
            transits = self.transit(x, labelled)
            scores = self.network.read(x, transits, labelled)
        return through_fixed_point(x, transits, labels, scores)

    def outcome(self, x: Sequence[Tensor], batch: GraphBatch) -> Outcome:
        """Scores and residuals at given states."""
        transits = self.transit(x, batch)
        return Outcome(
            states=[state.detach() for state in x],
            transits=transits,
            scores=self.network.read(x, transits, batch),
            residuals=residuals(x, transits),
        )

    def training_metrics(self) -> dict[str, Tensor]:
        norms = [m.detach().norm() for m in self.variables.multipliers.values]
        return {
            MULTIPLIER_NORM.name: of_all(norms, torch.norm),
            **{MULTIPLIER_NORM.of_layer(k): norm for k, norm in enumerate(norms)},
        }

    def scale_lr(self, scale: float) -> None:
        super().scale_lr(scale)
        for variables in self.training.values():
            variables.scale_lr(scale)
        for follower in self.followers.values():
            follower.rule.scale_lr(scale)

    def describe_divergence(self) -> str:
        states = [self.states_of(name) for name in (*self.training, *self.followers)]
        sizes = [max(map(_largest, layer)) for layer in zip(*states, strict=True)]
        layer = max(range(len(sizes)), key=sizes.__getitem__)
        multiplier = max(map(_largest, self.variables.multipliers.values))
        return (
            f"{super().describe_divergence()}, largest state {sizes[layer]:.3g} in layer {layer}, "
            f"largest multiplier {multiplier:.3g}"
        )

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "training": {name: v.state_dict() for name, v in self.training.items()},
            "followers": {name: f.state_dict() for name, f in self.followers.items()},
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        for name, variables in self.training.items():
            variables.load_state_dict(saved["training"][name])
        for name, follower in self.followers.items():
            follower.load_state_dict(saved["followers"][name])


@update_rule("gradient")
class Gradient(Lagrangian):
    """The paper's rule: theta and x descend, lambda ascends, all from one backward pass."""

    def start(self, batch: GraphBatch) -> Variables:
        self.g = build_constraint(self.config.g)
        return saddle_variables(self.config, self.network.zero_states(batch), batch)

    def train_step(self, epoch: int, part: Part, graphs: Tensor | None = None) -> Step:
        self.network.train()
        settings, batch = self.settings, part.batch
        with self.variables.of(graphs) as now:
            x, multipliers = now.states.values, now.multipliers.values
            self.theta.zero_grad()
            now.zero_grad()

            transits = self.transit(x, batch)
            residual = residuals(x, transits)
            # Before the readout: what is differentiated first needs least beside it.
            constraints = constraint_term(
                residual, multipliers, self.g, settings.rho, settings.constraint_reduction
            )
            scores = self.network.read(x, transits, batch)
            loss = supervised_loss(part, scores, settings.loss_reduction)
            lagrangian = loss + constraints

            objective = lagrangian + self.penalty(x, transits, batch, graphs)
            others = [*self.network.weights, *multipliers]
            differentiate(objective, constraints, x, others, settings.supervise_states)

            if epoch > settings.warmup:
                self.step_theta()
                now.multipliers.step()
            step_states(now, self.config)
        return Step.of(scores, lagrangian, residual)


def _largest(values: Tensor) -> float:
    """The largest magnitude; what is no number any more counts as infinite."""
    return float(values.detach().abs().nan_to_num(nan=torch.inf, posinf=torch.inf).max())
