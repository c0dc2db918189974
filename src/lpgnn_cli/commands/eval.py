"""`lpgnn eval`: the test phase again, from checkpoints alone, on known or on unseen graphs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from omegaconf import OmegaConf

from lpgnn_cli import tracking
from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.config.compose import given_keys
from lpgnn_cli.config.dataset import encoded_as
from lpgnn_cli.config.root import EvalConfig
from lpgnn_cli.config.tracking import MlflowConfig
from lpgnn_cli.metrics import LOSS, TEST, VIOLATION_MAX, VIOLATION_MEAN, score_metrics
from lpgnn_cli.reporting.eval_table import evaluation_table
from lpgnn_cli.runfolder import (
    FINISHED,
    INFLUENCE,
    MetricsWriter,
    Rule,
    RunFolder,
    RunRecord,
    UnitResult,
    runs_root,
)
from lpgnn_cli.runsummary import EvalSummary, MeanStd, Selection
from lpgnn_cli.screen import plain_console
from lpgnn_cli.tracking.find import find_checkpoints
from lpgnn_cli.training.device import resolve_device
from lpgnn_cli.training.experiment import claim, default_name, new_record
from lpgnn_cli.training.predictions import write_predictions
from lpgnn_cli.training.scoring import Score, TrainedUnit


def run(config: EvalConfig) -> float:
    """Score every unit, and return the mean of the metric that the run is judged by."""
    device = resolve_device(config.device)
    uri = config.tracking.uri if isinstance(config.tracking, MlflowConfig) else None
    files = find_checkpoints(config.run, config.checkpoint, config.unit, uri)
    units = [TrainedUnit(file, config.inference, device, config.data.memory) for file in files]
    torch.set_num_threads(config.threads or units[0].config.threads or 1)

    scores: list[Score] = []
    if config.dataset is not None:
        config.dataset = encoded_as(units[0].config.dataset, config.dataset, given_keys())
    for trained in units:
        if config.dataset is None:
            scores.append(trained.rescore(config.data.root))
        else:
            scores.append(trained.score(config.dataset, config.data.root))

    folder, record = start_evaluation(config, units, scores, device)
    with folder.held():
        claim(folder, record)
        for trained, score in zip(units, scores, strict=True):
            write_score(folder, trained, score)
        live = tracking.start(config.tracking, folder)
        summary = summarise_scores(scores)
        folder.write_summary(summary.to_dict())
        record.state, record.ended = FINISHED, time.time()
        folder.write_record(record)
    if live is not None:
        live.run_ended(folder, summary.to_dict())
    evaluation_table(plain_console(), folder, [t.unit.name for t in units], scores, summary)
    return summary.scored.figure.mean


def start_evaluation(
    config: EvalConfig, units: list[TrainedUnit], scores: list[Score], device: torch.device
) -> tuple[RunFolder, RunRecord]:
    """A run folder of its own, with the config of the network that is scored."""
    trained = replace(units[0].config, inference=units[0].inference)
    if config.dataset is not None:
        trained.dataset = config.dataset
    name = config.name or f"eval-{default_name(trained)}"
    folder = RunFolder.create(runs_root(), "eval", name)
    write_atomically(folder.config_path, OmegaConf.to_yaml(OmegaConf.structured(trained)))
    record = new_record("eval", name, trained, device, [t.unit for t in units])
    record.dataset_fingerprint = scores[0].dataset_fingerprint
    if config.dataset is None:
        record.split_fingerprint = units[0].content["split_fingerprint"]
    return folder, record


def write_score(folder: RunFolder, trained: TrainedUnit, score: Score) -> None:
    unit = folder.make_unit(trained.unit.name)
    writer = MetricsWriter(unit / "metrics.csv")
    writer.write(trained.epoch, score.metrics)
    writer.close()
    write_predictions(unit / "predictions.csv", score.evaluation, score.items)
    if score.influence is not None:
        score.influence.write(unit / INFLUENCE)
    folder.write_result(
        UnitResult(
            unit=trained.unit.name,
            state=FINISHED,
            epochs=trained.epoch,
            selected_epoch=trained.epoch,
            rule=Rule.CHECKPOINT,
            metrics=score.metrics,
            seconds=score.seconds,
            from_zero=_of_part(score.metrics),
            persistent=_of_part(score.persistent),
            inference=score.inference,
        )
    )


def summarise_scores(scores: list[Score]) -> EvalSummary:
    """Means over the units; accuracies as fractions."""
    test = {}
    for metric in (VIOLATION_MEAN, VIOLATION_MAX, LOSS):
        name = metric.on(TEST)
        values = [s.metrics[name] for s in scores if name in s.metrics]
        if values:
            test[name] = statistics.fmean(values)
    return EvalSummary(
        units=len(scores),
        scored=_selection([s.metrics for s in scores]),
        persistent=_selection([s.persistent for s in scores if s.persistent]),
        test=test,
    )


def _selection(units: Sequence[Mapping[str, float]]) -> Selection:
    metrics = {}
    for metric in score_metrics():
        name = metric.on(TEST)
        if values := [unit[name] for unit in units if name in unit]:
            metrics[metric.name] = MeanStd(statistics.fmean(values), statistics.pstdev(values))
    return Selection(Rule.CHECKPOINT, metrics)


def _of_part(metrics: Mapping[str, float]) -> dict[str, float]:
    """By name alone, without the part."""
    return {name.removeprefix(f"{TEST}/"): value for name, value in metrics.items()}
