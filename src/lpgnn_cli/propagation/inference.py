"""The test phase: theta is frozen, and states are found for graphs that were not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.model import (
    AndersonConfig,
    InferenceConfig,
    IterationConfig,
    LagrangianConfig,
)
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.propagation.saddle import Saddle
from lpgnn_cli.propagation.solvers import Anderson, Damped, Function, Rule, States


def inference_rule(
    config: TrainConfig, inference: InferenceConfig, zero_states: States, batch: GraphBatch
) -> Rule:
    """How unseen graphs find their states; `inference=lagrangian` is the rule of training itself,
    as the paper has it."""
    settings = config.propagation
    assert isinstance(settings, LagrangianConfig)
    if isinstance(inference, AndersonConfig):
        return Anderson(batch, inference.damping, inference.memory)
    if isinstance(inference, IterationConfig):
        return Damped(inference.damping)
    if settings.updates == "one_shot":
        return Damped(settings.damping)
    return Saddle(config, zero_states, batch)


class Follower:
    """States of graphs that are only evaluated: they follow theta, some steps per epoch."""

    def __init__(self, rule: Rule, zero_states: States) -> None:
        self.rule = rule
        self.states = zero_states

    @torch.no_grad()
    def follow(self, f: Function, steps: int) -> None:
        for _ in range(steps):
            self.states, _ = self.rule.advance(f, self.states)

    def state_dict(self) -> dict[str, Any]:
        return {"states": [x.clone() for x in self.states], "rule": self.rule.state_dict()}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.states = _like(self.states, saved["states"])
        self.rule.load_state_dict(saved["rule"])


def _like(mine: Sequence[Tensor], saved: Sequence[Tensor]) -> States:
    return [value.to(x) for x, value in zip(mine, saved, strict=True)]
