"""Predictions as a table: one row per graph or node."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.metrics import CLASSES, LABELS
from lpgnn_cli.propagation import Outcome
from lpgnn_cli.propagation.solvers import graph_violation
from lpgnn_cli.training.evaluation import Evaluation


def write_predictions(path: Path, evaluation: Evaluation, items: Tensor | None = None) -> None:
    """item is the index of the graph, or of the node, in the dataset: `items` says it of each
    target of the batch, unless that is the dataset."""
    part, batch = evaluation.part, evaluation.part.batch
    rows = torch.arange(len(batch.targets)) if part.scored is None else part.scored.cpu()
    items = rows if items is None else items[rows]
    answers, probabilities = _answers(evaluation)
    columns = {
        **answers,
        "violation": item_violation(batch, evaluation.outcome),
        **_numbered("probability", probabilities),
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", *columns])
        chosen = (column.cpu()[rows].tolist() for column in columns.values())
        writer.writerows(zip(items.tolist(), *chosen, strict=True))


def _answers(evaluation: Evaluation) -> tuple[dict[str, Tensor], Tensor]:
    """What is true and what the network says, and the probabilities of all classes or labels."""
    batch, judging = evaluation.part.batch, evaluation.part.judging
    scores = evaluation.outcome.scores
    if batch.task == CLASSES:
        probabilities = scores.softmax(dim=1)
        probability, predicted = probabilities.max(dim=1)
        answers = {"target": batch.targets, "predicted": predicted, "probability": probability}
        return answers, probabilities
    if batch.task == LABELS:
        return _numbered("target", batch.targets), scores.sigmoid()
    numbers = {
        **_numbered("target", judging.in_units(batch.targets)),
        **_numbered("predicted", judging.in_units(scores)),
    }
    return numbers, scores[:, :0]


def _numbered(name: str, matrix: Tensor) -> dict[str, Tensor]:
    columns: Iterable[Tensor] = matrix.T
    return {f"{name}_{k}": column for k, column in enumerate(columns)}


def item_violation(batch: GraphBatch, outcome: Outcome) -> Tensor:
    """The mean of |x - f_a(x)| of each graph or node; zero where no constraint is asked to hold."""
    if not outcome.residuals:
        return torch.zeros(len(batch.targets))
    if batch.target_level == "graph":
        return graph_violation(outcome.residuals, batch)
    return torch.cat([r.abs() for r in outcome.residuals], dim=1).mean(dim=1)
