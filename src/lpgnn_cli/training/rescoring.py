"""The best mean epoch from zero: it is known only once all units have been trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from lpgnn_cli.model.network import DataShape
from lpgnn_cli.propagation import build_propagation
from lpgnn_cli.runfolder import FINISHED, RunFolder
from lpgnn_cli.training.closing import scored_part
from lpgnn_cli.training.evaluation import Evaluation
from lpgnn_cli.training.history import FILE, read_weights
from lpgnn_cli.training.parts import fit_scaler, make_parts

if TYPE_CHECKING:
    from lpgnn_cli.training.experiment import Experiment, Fold


def rescore(experiment: Experiment, run: RunFolder, epoch: int) -> bool:
    """Score finished units from zero with the weights they had in that epoch, where those were
    kept; whether any was. A unit that had stopped before counts with its last epoch."""
    any_scored = False
    for fold in experiment.folds:
        result = run.read_result(fold.unit.name)
        if result is None or result.state != FINISHED:
            continue
        at = min(epoch, result.epochs)
        scored = _score(experiment, fold, run, at)
        if scored is not None:
            result.best_mean_epoch, result.best_mean_epoch_from_zero = at, scored
            run.write_result(result)
            any_scored = True
    return any_scored


def forget_weights(run: RunFolder) -> None:
    """Once nothing is to be scored any more."""
    for unit in run.read_record().units:
        (run.unit(unit.name) / FILE).unlink(missing_ok=True)


def _score(
    experiment: Experiment, fold: Fold, run: RunFolder, epoch: int
) -> dict[str, float] | None:
    path = run.unit(fold.unit.name) / FILE
    if not path.is_file():
        return None
    config = experiment.config_of(fold)
    torch.set_num_threads(experiment.threads)
    scaler = fit_scaler(config, fold.dataset, fold.split)
    parts = make_parts(config, fold.dataset, fold.split, scaler, experiment.device)
    part = parts[scored_part(parts)]
    propagation = build_propagation(config, DataShape.of(part.batch), {}, like=part.batch.features)
    weights = read_weights(path, epoch, propagation.network.state_dict())
    if weights is None:
        return None
    propagation.network.load_state_dict(weights)
    outcome, _ = propagation.infer(part.batch, config.inference)
    return Evaluation(part, outcome).by_name()
