"""A trained unit, rebuilt from its checkpoint alone, scored again or on graphs it never saw."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.config.model import InferenceConfig
from lpgnn_cli.config.restore import restore_config
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import Dataset, FeatureScaler, Split, Vocabulary, load_dataset
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.runfolder import Unit
from lpgnn_cli.training.build import build_learner
from lpgnn_cli.training.checkpoint import load_checkpoint
from lpgnn_cli.training.closing import agreement
from lpgnn_cli.training.evaluation import Evaluation, Part
from lpgnn_cli.training.lagrangian import LagrangianLearner
from lpgnn_cli.training.parts import make_parts, place
from lpgnn_cli.training.updates import inference_updates, solve


@dataclass(frozen=True)
class Score:
    """An evaluation, what to log of it, and what was recorded when the checkpoint was written."""

    evaluation: Evaluation
    metrics: dict[str, float]
    inference: dict[str, float]
    recorded: dict[str, float]
    dataset_fingerprint: str
    seconds: float


class TrainedUnit:
    """The content of one checkpoint."""

    def __init__(self, path: Path, inference: InferenceConfig | None, device: torch.device) -> None:
        self.path = path
        self.device = device
        self.content: dict[str, Any] = load_checkpoint(path)
        self.trained_config: TrainConfig = restore_config(self.content["config"])
        self.config = replace(
            self.trained_config, inference=inference or self.trained_config.inference
        )
        self.unit = Unit(**self.content["unit"])
        self.epoch = int(self.content["progress"]["epoch"])
        self.shape = DataShape(**self.content["shape"])
        self.scaler = FeatureScaler.from_dict(self.content["scaler"])

    def rescore(self, data_root: str | None) -> Score:
        """The test part it was scored on in training, at the states of the checkpoint."""
        started = time.perf_counter()
        dataset = load_dataset(self.config.dataset, data_root, self.unit.seed)
        if dataset.fingerprint() != self.content["dataset_fingerprint"]:
            raise UserError(
                f"{self.path} was trained on other data than {dataset.name} is here: the "
                "fingerprints differ; point data.root at the data it was trained on."
            )
        split = Split(**self.content["split"])
        parts = make_parts(self.config, dataset, split, self.scaler, self.device)
        # The states in the checkpoint are those of the test phase it was trained with.
        learner = build_learner(self.trained_config, parts)
        learner.load_state_dict(self.content["learner"])
        learner.config = self.config
        name = "test" if "test" in parts else "train"
        evaluation = learner.evaluate(name)
        return Score(
            evaluation=evaluation,
            metrics=evaluation.metrics("test"),
            inference=agreement(learner, name),
            recorded=self.content["progress"]["metrics"],
            dataset_fingerprint=dataset.fingerprint(),
            seconds=time.perf_counter() - started,
        )

    def score(self, dataset_config: DatasetConfig, data_root: str | None) -> Score:
        """Graphs that were not there in training: the test phase from zero states."""
        started = time.perf_counter()
        vocabulary = Vocabulary.from_dict(self.content["vocabulary"])
        dataset = load_dataset(dataset_config, data_root, self.unit.seed, vocabulary)
        self._check_shape(dataset)
        batch = place(self.scaler.apply(dataset.batch), self.config, self.device)
        part = Part(batch)
        learner = build_learner(self.config, {"train": part})
        learner.network.load_state_dict(self.content["learner"]["network"])
        inference: dict[str, float] = {}
        if isinstance(learner, LagrangianLearner):
            learner.network.eval()
            updates = inference_updates(learner.network, batch, self.config)
            stats = solve(updates, self.config.inference.steps, self.config.inference.tolerance)
            evaluation = learner.evaluate_at("train", updates.variables.states)
            if learner.propagation.states == "free":
                inference = {"converged": stats.converged, "steps": float(stats.steps)}
        else:
            evaluation = learner.evaluate("train")
        return Score(
            evaluation=evaluation,
            metrics=evaluation.metrics("test"),
            inference=inference,
            recorded={},
            dataset_fingerprint=dataset.fingerprint(),
            seconds=time.perf_counter() - started,
        )

    def _check_shape(self, dataset: Dataset) -> None:
        found = DataShape.of(dataset.batch)
        for name, word in (
            ("features", "node features"),
            ("arc_features", "arc features"),
            ("classes", "classes"),
            ("target_level", "targets"),
        ):
            mine, theirs = getattr(self.shape, name), getattr(found, name)
            if mine != theirs:
                raise UserError(
                    f"{dataset.name} does not fit {self.path}: it has {theirs} {word}, and the "
                    f"network was trained with {mine}."
                )
