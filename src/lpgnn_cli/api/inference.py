"""The test phase of one trained network, on graphs that have no targets."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.targets import Judging
from lpgnn_cli.training.closing import solve_metrics
from lpgnn_cli.training.parts import place
from lpgnn_cli.training.scoring import TrainedUnit


@dataclass(frozen=True, eq=False)
class Answer:
    """Class scores, the states of every layer, and how they were found; all on the CPU."""

    scores: Tensor
    states: list[Tensor]
    inference: dict[str, float]


def infer(trained: TrainedUnit, batch: GraphBatch) -> Answer:
    """Scores of graphs at states that the test phase finds from zero."""
    placed = place(trained.scaler.apply(batch), trained.config, trained.device)
    outcome, stats = trained.infer(placed)
    states = [x.detach().cpu() for x in outcome.states]
    scores = Judging(units=trained.units).in_units(outcome.scores.detach().cpu())
    return Answer(scores, states, solve_metrics(stats))
