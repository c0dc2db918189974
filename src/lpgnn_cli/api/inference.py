"""The test phase of one trained network, on graphs that have no targets."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.training.backprop import BackpropLearner
from lpgnn_cli.training.build import build_learner
from lpgnn_cli.training.evaluation import Part
from lpgnn_cli.training.lagrangian import LagrangianLearner
from lpgnn_cli.training.parts import place
from lpgnn_cli.training.scoring import TrainedUnit
from lpgnn_cli.training.updates import inference_updates, solve


@dataclass(frozen=True, eq=False)
class Answer:
    """Class scores, the states of every layer, and how they were found; all on the CPU."""

    scores: Tensor
    states: list[Tensor]
    inference: dict[str, float]


def infer(trained: TrainedUnit, batch: GraphBatch) -> Answer:
    """Scores of graphs at states that the test phase finds from zero."""
    config = trained.config
    placed = place(trained.scaler.apply(batch), config, trained.device)
    learner = build_learner(config, {"train": Part(placed)})
    learner.network.load_state_dict(trained.content["learner"]["network"])
    learner.network.eval()
    inference: dict[str, float] = {}
    if isinstance(learner, LagrangianLearner):
        updates = inference_updates(learner.network, placed, config)
        stats = solve(updates, config.inference.steps, config.inference.tolerance)
        inference = {"converged": stats.converged, "steps": float(stats.steps)}
        states = updates.variables.states
        scores = learner.evaluate_at("train", states).scores
    else:
        assert isinstance(learner, BackpropLearner)
        with torch.no_grad():
            states, transits = learner.propagate(placed)
            scores = learner.network.read(states, transits, placed)
    return Answer(scores.detach().cpu(), [x.detach().cpu() for x in states], inference)
