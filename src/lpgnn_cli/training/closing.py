"""What is learnt of a trained unit: predictions, residuals, and whether its fixed points hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lpgnn_cli.config.model import InferenceConfig
from lpgnn_cli.data.part import Part
from lpgnn_cli.metrics import (
    CLASSES,
    CONVERGED,
    EQUAL_ANSWERS,
    FROM_ZERO_VIOLATION,
    GAIN,
    GAIN_LARGEST,
    PATH_FREE,
    REACH,
    STEPS,
    TEST,
    TRAIN,
    VIOLATION_MEAN,
)
from lpgnn_cli.propagation import Outcome, Propagation, SolveStats
from lpgnn_cli.runfolder import INFLUENCE
from lpgnn_cli.training.evaluation import Evaluation
from lpgnn_cli.training.influence import measure_influence
from lpgnn_cli.training.predictions import write_predictions

# More make no better picture.
MOST_RESIDUALS = 10_000_000


def scored_part(parts: Mapping[str, Part]) -> str:
    """The name of the part whose accuracy is that of the unit."""
    return TEST if TEST in parts else TRAIN


@dataclass(frozen=True)
class Closing:
    """A part in the test phase from zero, and at the states of training, where states persist."""

    evaluation: Evaluation
    # Metrics by name; `persistent` is empty where nothing persists.
    from_zero: dict[str, float]
    persistent: dict[str, float]
    # How the test phase went, and how it relates to the states of training.
    inference: dict[str, float]


def close_unit(
    propagation: Propagation,
    parts: Mapping[str, Part],
    inference: InferenceConfig,
    folder: Path,
    far: bool = False,
    items: Tensor | None = None,
) -> Closing:
    """Score the test part, or the training part if none is, and write its predictions.

    With `far`, how far labels count is measured, too; `items` is the index in the dataset of each
    target of the part.
    """
    name = scored_part(parts)
    closing = score_part(propagation, name, parts[name], inference)
    write_predictions(folder / "predictions.csv", closing.evaluation, items)
    residuals = {
        part: _flat(Evaluation.of(propagation, part, parts[part])) for part in (TRAIN, name)
    }
    if residuals[name].size:
        arrays: dict[str, Any] = residuals
        np.savez_compressed(folder / "residuals.npz", **arrays)
    if far and (found := measure_influence(propagation, parts[name], inference)) is not None:
        found.write(folder / INFLUENCE)
        closing.inference[REACH.name] = float(found.reach)
    return closing


def score_part(
    propagation: Propagation, name: str, part: Part, inference: InferenceConfig
) -> Closing:
    """The test phase from zero, and whether it ends where the states of training went.

    The gain is that of the transition's Jacobian at the persistent states, or at those found where
    a bound was asked for and nothing proves it: above 1 the fixed points repel, and a prediction
    depends on the path that led to it.
    """
    outcome, stats = propagation.infer(part.batch, inference)
    evaluation = Evaluation(part, outcome)
    found, solved = evaluation.by_name(), solve_metrics(stats)
    if not propagation.persistent:
        unproved = propagation.bound is not None and not propagation.bound.is_proved
        measured = _gain(propagation, outcome, part) if unproved else {}
        return Closing(evaluation, found, {}, solved | measured)
    there = Evaluation.of(propagation, name, part)
    compared = {
        FROM_ZERO_VIOLATION.name: found[VIOLATION_MEAN.name],
        **solved,
        **_gain(propagation, there.outcome, part),
        **_equal_answers(evaluation, there),
        PATH_FREE.name: float(propagation.path_free),
    }
    return Closing(evaluation, found, there.by_name(), compared)


def _gain(propagation: Propagation, outcome: Outcome, part: Part) -> dict[str, float]:
    """On average over the graphs, and of the one that has most."""
    gain = propagation.gain(outcome, part.batch)
    return {GAIN.name: float(gain.mean()), GAIN_LARGEST.name: float(gain.max())}


def _equal_answers(evaluation: Evaluation, other: Evaluation) -> dict[str, float]:
    """The share of classes that are the same; numbers have no share."""
    part = evaluation.part
    if part.batch.task != CLASSES:
        return {}
    mine, theirs = (part.select(e.outcome.scores).argmax(dim=1) for e in (evaluation, other))
    return {EQUAL_ANSWERS.name: float((mine == theirs).float().mean())}


def solve_metrics(stats: SolveStats | None) -> dict[str, float]:
    """How the test phase went, where there was something to solve."""
    if stats is None:
        return {}
    return {CONVERGED.name: stats.converged, STEPS.name: float(stats.steps)}


def _flat(evaluation: Evaluation) -> npt.NDArray[np.float32]:
    """|x - f_a(x)| of all nodes, or of enough of a large graph's, dimensions and layers."""
    residuals = evaluation.outcome.residuals
    if not residuals:
        return np.empty(0, dtype=np.float32)
    step = -(-sum(r.numel() for r in residuals) // MOST_RESIDUALS)
    flat = torch.cat([r[::step].abs().flatten() for r in residuals])
    array: npt.NDArray[np.float32] = flat.float().cpu().numpy()
    return array
