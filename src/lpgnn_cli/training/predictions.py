"""Predictions as a table: one row per graph or node."""

from __future__ import annotations

import csv
from pathlib import Path

import torch

from lpgnn_cli.propagation.solvers import graph_violation
from lpgnn_cli.training.evaluation import Evaluation

COLUMNS = ("item", "target", "predicted", "probability", "violation")


def write_predictions(path: Path, evaluation: Evaluation) -> None:
    """item is the index of the graph, or of the node, within the part."""
    part, batch = evaluation.part, evaluation.part.batch
    outcome = evaluation.outcome
    probability, predicted = outcome.scores.softmax(dim=1).max(dim=1)
    if not outcome.residuals:
        violation = torch.zeros_like(probability)
    elif batch.target_level == "graph":
        violation = graph_violation(outcome.residuals, batch)
    else:
        violation = torch.cat([r.abs() for r in outcome.residuals], dim=1).mean(dim=1)
    items = torch.arange(len(batch.targets)) if part.scored is None else part.scored.cpu()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        columns = (batch.targets, predicted, probability, violation)
        writer.writerows(
            zip(items.tolist(), *(c.cpu()[items].tolist() for c in columns), strict=True)
        )
