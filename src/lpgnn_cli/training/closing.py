"""What is learnt of a trained unit: predictions, residuals, and whether its fixed points hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from lpgnn_cli.model.contraction import estimate_gain
from lpgnn_cli.training.evaluation import Evaluation
from lpgnn_cli.training.lagrangian import LagrangianLearner
from lpgnn_cli.training.learner import Learner
from lpgnn_cli.training.predictions import write_predictions
from lpgnn_cli.training.updates import inference_updates, solve


def close_unit(learner: Learner, folder: Path) -> dict[str, float]:
    """Write the predictions of the scored part; compare its states with those found from zero."""
    name = "test" if "test" in learner.parts else "train"
    evaluation = learner.evaluate(name)
    write_predictions(folder / "predictions.csv", evaluation)
    residuals = {part: _flat(learner.evaluate(part)) for part in ("train", name)}
    if residuals[name].size:
        arrays: dict[str, Any] = residuals
        np.savez_compressed(folder / "residuals.npz", **arrays)
    return agreement(learner, name)


def agreement(learner: Learner, name: str) -> dict[str, float]:
    """Does the test phase, started from zero, end where the states of training went?

    The gain is that of the transition's Jacobian at the persistent states, averaged over graphs:
    above 1 the fixed points repel, and a prediction depends on the path that led to it. Empty
    where no states persist.
    """
    if not isinstance(learner, LagrangianLearner) or learner.propagation.states == "frozen":
        return {}
    config, part = learner.config, learner.parts[name]
    persistent = learner.evaluate(name).metrics(name)
    states = learner.states_of(name)
    gain = estimate_gain(learner.network, states, part.batch)
    fresh = inference_updates(learner.network, part.batch, config)
    stats = solve(fresh, config.inference.steps, config.inference.tolerance)
    found = learner.evaluate_at(name, fresh.variables.states).metrics(name)
    return {
        "persistent_accuracy": persistent[f"{name}/accuracy"],
        "from_zero_accuracy": found[f"{name}/accuracy"],
        "from_zero_violation": found[f"{name}/violation_mean"],
        "converged": stats.converged,
        "steps": float(stats.steps),
        "gain": float(gain.mean()),
    }


def _flat(evaluation: Evaluation) -> npt.NDArray[np.float32]:
    """|x - f_a(x)| of all nodes, dimensions and layers."""
    if not evaluation.residuals:
        return np.empty(0, dtype=np.float32)
    flat = torch.cat([r.abs().flatten() for r in evaluation.residuals])
    array: npt.NDArray[np.float32] = flat.float().cpu().numpy()
    return array
