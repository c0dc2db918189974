"""How the states of a network come to be, in training and in the test phase."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from lpgnn_cli.config.model import PROPAGATIONS, InferenceConfig, PropagationConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.mlp import taking_statistics
from lpgnn_cli.model.network import Network
from lpgnn_cli.propagation.gain import Gain, GainBound
from lpgnn_cli.propagation.optim import build_optimiser, scale_lr, step_decayed
from lpgnn_cli.propagation.solvers import SolveStats


@dataclass(frozen=True)
class Outcome:
    """What a network makes of some graphs, layer by layer and as class scores."""

    states: list[Tensor]
    transits: list[Tensor]
    scores: Tensor
    # x - f_a(x); none where no constraint is asked to hold.
    residuals: list[Tensor]


@dataclass(frozen=True)
class Step:
    """What a training step saw before it moved anything; nothing here is differentiable."""

    scores: Tensor
    lagrangian: Tensor
    residuals: list[Tensor]

    @classmethod
    def of(cls, scores: Tensor, lagrangian: Tensor, residuals: Sequence[Tensor]) -> Step:
        return cls(scores.detach(), lagrangian.detach(), [r.detach() for r in residuals])


# From weights of the scores, one row per target, to the gradient of their sum by the node labels.
Pullback = Callable[[Tensor], Tensor]
Build = Callable[[Network, TrainConfig, Mapping[str, GraphBatch]], "Propagation"]
B = TypeVar("B", bound=Build)


def propagation(name: str, settings: type[PropagationConfig]) -> Callable[[B], B]:
    """Decorator: `propagation=<name>` is built by this, from a network, the config and the sets."""

    def add(build: B) -> B:
        PROPAGATIONS.add(name, PropagationConfig, settings, build)
        return build

    return add


class Propagation(ABC):
    """A network, what trains its weights, and the variables of the graphs it has been given.

    The sets of graphs have names, "train" among them if there is to be training. No batch is kept:
    whoever calls brings the graphs, and the propagation brings what it holds for them.
    """

    # Whether states are carried along from epoch to epoch, and so may depend on the path there.
    persistent: bool = False
    # What a layer hands to the next as node label: its state x, or its transition f_a(x).
    hands_up_transition: bool = False

    def __init__(
        self, network: Network, config: TrainConfig, sets: Mapping[str, GraphBatch]
    ) -> None:
        self.network = network
        self.config = config
        self.theta = build_optimiser(
            config.optim,
            network.parameters(),
            config.lr.theta,
            weight_decay=config.optim.weight_decay,
        )
        self.bound = GainBound.wanted(config.propagation, network, sets.get("train"))

    @abstractmethod
    def train_step(self, epoch: int, part: Part, graphs: Tensor | None = None) -> Step:
        """One step of all that learns, on a part that holds these graphs of "train" (or all)."""

    def finish_epoch(self, epoch: int) -> None:
        """What waits until an epoch's steps have seen all training graphs."""
        return None

    @torch.no_grad()
    def evaluate(self, name: str, batch: GraphBatch) -> Outcome:
        """A set of graphs as it stands, in evaluation mode."""
        self.network.eval()
        return self.look(name, batch)

    @abstractmethod
    def look(self, name: str, batch: GraphBatch) -> Outcome:
        """A set of graphs as it stands."""

    @abstractmethod
    def infer(
        self, batch: GraphBatch, inference: InferenceConfig
    ) -> tuple[Outcome, SolveStats | None]:
        """The test phase: graphs whose states nobody knows, with theta frozen."""

    def follow(self, name: str, batch: GraphBatch) -> None:
        """Let the states of a set that is not trained on follow theta for one epoch."""
        return None

    def training_metrics(self) -> dict[str, Tensor]:
        """What is to be logged of the variables of the training graphs."""
        return {}

    def transit(self, states: Sequence[Tensor], batch: GraphBatch) -> list[Tensor]:
        """f_a(x) of every layer at the given states."""
        transits: list[Tensor] = []
        for layer, state in enumerate(states):
            below = transits if self.hands_up_transition else states
            transits.append(self.network.transition(layer, state, below, batch))
        return transits

    def gain(self, outcome: Outcome, batch: GraphBatch) -> Tensor:
        """How much the transition stretches a difference in x, for each graph."""
        return Gain.estimate(lambda x: self.transit(x, batch), outcome.states, batch)

    def pullback(self, batch: GraphBatch, inference: InferenceConfig) -> Pullback | None:
        """How the scores of the test phase depend on node labels, through all of the diffusion;
        None where that is too much to ask."""
        self.network.eval()
        labels = batch.features.detach().requires_grad_()
        with torch.enable_grad():
            scores = self.look("unseen", batch.with_features(labels)).scores

        def pull(weights: Tensor) -> Tensor:
            weighted = (scores * weights).sum()
            (gradient,) = torch.autograd.grad(weighted, labels, retain_graph=True)
            return gradient

        return pull

    def penalty(
        self,
        states: Sequence[Tensor],
        transits: Sequence[Tensor],
        batch: GraphBatch,
        graphs: Tensor | None,
    ) -> Tensor:
        """What a gain above its bound adds to the objective; zero where there is no bound."""
        if self.bound is None:
            return batch.features.new_zeros(())
        return self.bound.penalty(states, transits, batch, graphs)

    def step_theta(self) -> None:
        """Descend on theta, and keep the gain within its bound if that is asked of the weights."""
        if self.config.optim.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.network.weights, self.config.optim.clip)
        step_decayed(self.theta, self.config.optim.decoupled_decay)
        if self.bound is not None:
            self.bound.project()

    @property
    def path_free(self) -> bool:
        """Whether states that persist end, by construction, where the test phase from zero ends."""
        return not self.persistent or (self.bound is not None and self.bound.is_proved)

    def renew(self, batch: GraphBatch) -> Tensor:
        """Put back to zero the training graphs whose turn it is; (G,) those that begin anew."""
        return torch.ones(batch.num_graphs, dtype=torch.bool, device=batch.graph_ptr.device)

    def take_statistics(self, batch: GraphBatch) -> None:
        """Those of the training graphs under the weights as they are, for evaluation."""
        if self.network.has_statistics:
            with torch.no_grad(), taking_statistics(self.network):
                self.look("train", batch)

    def scale_lr(self, scale: float) -> None:
        """All learning rates as configured, times `scale`."""
        scale_lr(self.theta, scale)

    def describe_divergence(self) -> str:
        """Where the numbers went wrong."""
        for name, parameter in self.network.named_parameters():
            if not bool(torch.isfinite(parameter).all()):
                return f"weight {name} is not finite"
        return "all weights are finite"

    def is_mapped(self, tensor: Tensor) -> bool:
        """Whether something of the state is too large to be held in memory."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on; not a copy."""
        saved: dict[str, Any] = {
            "network": self.network.state_dict(),
            "theta": self.theta.state_dict(),
        }
        if self.bound is not None:
            saved["bound"] = self.bound.state_dict()
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.network.load_state_dict(saved["network"])
        self.theta.load_state_dict(saved["theta"])
        if self.bound is not None:
            self.bound.load_state_dict(saved["bound"])
