"""Ages: the diffusion unfolded in time, one step of it per epoch.

The constraints are  x(t+1) = f_a(x(t)),  x(0) = 0,  t = 0 ... T - 1,  with the same weights at
every age t and a multiplier per age. Every graph stands at one age and moves up by one per epoch.
At age t, from one forward and one backward pass,

    theta descends on  loss(f_r(f_a(x(t)))) + <lambda(t+1), f_a(x(t))>,    lambda(T) = 0,
    lambda(t) <- J^T (lambda(t+1) + dloss/df_a),
    x(t+1)    <- f_a(x(t)),

and after the last age it begins anew at zero. With the weights at rest the multipliers are the
adjoints of backpropagation through all T steps. The test phase is the same T steps from zero, so
nothing depends on the path of training, and no bound on the gain is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import InferenceConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.metrics import MULTIPLIER_MEMORY, precision
from lpgnn_cli.model.loss import supervised_loss
from lpgnn_cli.model.network import Network
from lpgnn_cli.propagation.base import Outcome, Step
from lpgnn_cli.propagation.lagrangian import Lagrangian, update_rule
from lpgnn_cli.propagation.one_shot import gradient, inner
from lpgnn_cli.propagation.solvers import SolveStats, graph_violation, residuals
from lpgnn_cli.propagation.variables import Player, Variables


@update_rule("ages")
class Ages(Lagrangian):
    """Multipliers (N, T, S): those of age t stand at t; age 0 has none, and age T has zero."""

    # Evaluated graphs take their T steps from zero each time.
    persistent = False

    def __init__(
        self, network: Network, config: TrainConfig, sets: Mapping[str, GraphBatch]
    ) -> None:
        only_training = {name: batch for name, batch in sets.items() if name == "train"}
        super().__init__(network, config, only_training)

    def start(self, batch: GraphBatch) -> Variables:
        ages = self.settings.ages
        zero = self.network.zero_states(batch)
        multipliers = [x.new_zeros(x.shape[0], ages, x.shape[1]) for x in zero]
        # Graphs begin at all ages, so that every epoch sees all of them.
        self.age = torch.randint(ages, (batch.num_graphs,)).to(batch.graph_ptr.device)
        return Variables(Player(zero, None), Player(multipliers, None), batch.graph_ptr)

    def renew(self, batch: GraphBatch) -> Tensor:
        return self.age == 0

    def train_step(self, epoch: int, part: Part, graphs: Tensor | None = None) -> Step:
        self.network.train()
        settings, batch = self.settings, part.batch
        age = self.age if graphs is None else self.age[graphs]
        age_N = age[batch.graph_of_node]
        with self.variables.of(graphs) as now:
            x = now.states.values
            multipliers = [self._at(m, age_N + 1) for m in now.multipliers.values]

            transits = self.transit(x, batch)
            still_to_go = residuals(x, transits)
            scores = self.network.read(transits, transits, batch)
            loss = supervised_loss(part, scores, settings.loss_reduction)

            self.theta.zero_grad()
            now.zero_grad()
            lagrangian = loss + inner(multipliers, transits)
            (lagrangian + self.penalty(x, transits, batch, graphs)).backward()
            self.step_theta()

            with torch.no_grad():
                if settings.adjoint:
                    nodes = torch.arange(batch.num_nodes, device=age_N.device)
                    for m, state in zip(now.multipliers.values, x, strict=True):
                        m[nodes, age_N] = self._clipped(gradient(state), part)
                last = age_N[:, None] + 1 == settings.ages
                now.states.set([f.masked_fill(last, 0.0) for f in transits])
        self.age[slice(None) if graphs is None else graphs] = (age + 1) % settings.ages
        return Step.of(scores, lagrangian, still_to_go)

    def _at(self, multipliers_NTS: Tensor, age_N: Tensor) -> Tensor:
        """lambda of these ages, where zero stands for age T."""
        ages = self.settings.ages
        nodes = torch.arange(len(age_N), device=age_N.device)
        there = multipliers_NTS.detach()[nodes, age_N % ages]
        return there.masked_fill((age_N >= ages)[:, None], 0.0)

    def _clipped(self, multiplier: Tensor, part: Part) -> Tensor:
        """No longer, per node, than the bound: in units of the weight that a target has."""
        clip = self.settings.clip
        if clip is None:
            return multiplier
        weight = 1 / part.targets.shape[0] if self.settings.loss_reduction == "mean" else 1.0
        length = multiplier.norm(dim=1, keepdim=True)
        clipped: Tensor = multiplier * (clip * weight / length.clamp(min=1e-30)).clamp(max=1.0)
        return clipped

    def training_metrics(self) -> dict[str, Tensor]:
        kept = sum(m.numel() * m.element_size() for m in self.variables.multipliers.values)
        megabytes = self.age.new_tensor(kept / 1e6, dtype=precision(self.age))
        return {**super().training_metrics(), MULTIPLIER_MEMORY.name: megabytes}

    def look(self, name: str, batch: GraphBatch) -> Outcome:
        x = self.network.zero_states(batch)
        for _ in range(self.settings.ages - 1):
            x = self.transit(x, batch)
        transits = self.transit(x, batch)
        scores = self.network.read(transits, transits, batch)
        return Outcome(x, transits, scores, residuals(x, transits))

    def infer(
        self, batch: GraphBatch, inference: InferenceConfig
    ) -> tuple[Outcome, SolveStats | None]:
        outcome = self.evaluate("unseen", batch)
        still = graph_violation(outcome.residuals, batch)
        size = graph_violation(outcome.states, batch)
        settled = float((still <= inference.tolerance * size).sum()) / batch.num_graphs
        return outcome, SolveStats(self.settings.ages, float(still.mean()), settled)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "age": self.age}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        self.age = saved["age"].to(self.age)
