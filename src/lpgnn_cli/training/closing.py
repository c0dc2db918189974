"""What is learnt of a trained unit: predictions, residuals, and whether its fixed points hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from lpgnn_cli.config.model import InferenceConfig
from lpgnn_cli.data.part import Part
from lpgnn_cli.metrics import (
    ACCURACY,
    CONVERGED,
    FROM_ZERO_ACCURACY,
    FROM_ZERO_VIOLATION,
    GAIN,
    PERSISTENT_ACCURACY,
    STEPS,
    TEST,
    TRAIN,
    VIOLATION_MEAN,
)
from lpgnn_cli.propagation import Propagation, SolveStats
from lpgnn_cli.training.evaluation import Evaluation
from lpgnn_cli.training.predictions import write_predictions


def scored_part(parts: Mapping[str, Part]) -> str:
    """The name of the part whose accuracy is that of the unit."""
    return TEST if TEST in parts else TRAIN


def close_unit(
    propagation: Propagation, parts: Mapping[str, Part], inference: InferenceConfig, folder: Path
) -> dict[str, float]:
    """Write the predictions of the scored part; compare its states with those found from zero."""
    name = scored_part(parts)
    evaluation = Evaluation.of(propagation, name, parts[name])
    write_predictions(folder / "predictions.csv", evaluation)
    residuals = {
        part: _flat(Evaluation.of(propagation, part, parts[part])) for part in (TRAIN, name)
    }
    if residuals[name].size:
        arrays: dict[str, Any] = residuals
        np.savez_compressed(folder / "residuals.npz", **arrays)
    return agreement(propagation, name, parts[name], inference)


def agreement(
    propagation: Propagation, name: str, part: Part, inference: InferenceConfig
) -> dict[str, float]:
    """Does the test phase, started from zero, end where the states of training went?

    The gain is that of the transition's Jacobian at the persistent states, averaged over graphs:
    above 1 the fixed points repel, and a prediction depends on the path that led to it. Empty
    where no states persist.
    """
    if not propagation.persistent:
        return {}
    there = Evaluation.of(propagation, name, part)
    gain = propagation.gain(there.outcome, part.batch)
    outcome, stats = propagation.infer(part.batch, inference)
    persistent, found = there.metrics(name), Evaluation(part, outcome).metrics(name)
    return {
        PERSISTENT_ACCURACY.name: persistent[ACCURACY.on(name)],
        FROM_ZERO_ACCURACY.name: found[ACCURACY.on(name)],
        FROM_ZERO_VIOLATION.name: found[VIOLATION_MEAN.on(name)],
        **solve_metrics(stats),
        GAIN.name: float(gain.mean()),
    }


def solve_metrics(stats: SolveStats | None) -> dict[str, float]:
    """How the test phase went, where there was something to solve."""
    if stats is None:
        return {}
    return {CONVERGED.name: stats.converged, STEPS.name: float(stats.steps)}


def _flat(evaluation: Evaluation) -> npt.NDArray[np.float32]:
    """|x - f_a(x)| of all nodes, dimensions and layers."""
    residuals = evaluation.outcome.residuals
    if not residuals:
        return np.empty(0, dtype=np.float32)
    flat = torch.cat([r.abs().flatten() for r in residuals])
    array: npt.NDArray[np.float32] = flat.float().cpu().numpy()
    return array
