"""A trained unit, rebuilt from its checkpoint alone, scored again or on graphs it never saw."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.config.model import InferenceConfig
from lpgnn_cli.config.restore import restore_config
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import Dataset, FeatureScaler, Split, Vocabulary, load_dataset
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.targets import Judging, Units
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import REACH, TEST
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.propagation import Outcome, Propagation, SolveStats, build_propagation
from lpgnn_cli.runfolder import Unit
from lpgnn_cli.stored import record_from
from lpgnn_cli.training.checkpoint import load_checkpoint, reading
from lpgnn_cli.training.closing import score_part, scored_part, solve_metrics
from lpgnn_cli.training.evaluation import Evaluation
from lpgnn_cli.training.influence import Influence, measure_influence
from lpgnn_cli.training.parts import in_units, items_of, make_parts, place
from lpgnn_cli.training.row_files import RowFiles


@dataclass(frozen=True)
class Score:
    """An evaluation from zero, what to log of it, and what was recorded with the checkpoint."""

    evaluation: Evaluation
    metrics: dict[str, float]
    # At the states of the checkpoint, where it holds states of these graphs.
    persistent: dict[str, float]
    inference: dict[str, float]
    recorded: dict[str, float]
    # How much the labels of nodes count, by hops; None where they have none.
    influence: Influence | None
    dataset_fingerprint: str
    seconds: float
    # The index in the dataset of each target that was evaluated; None: these are all of them.
    items: Tensor | None = None


class TrainedUnit:
    """The content of one checkpoint."""

    def __init__(
        self,
        path: Path,
        inference: InferenceConfig | None,
        device: torch.device,
        memory: str | None = None,
    ) -> None:
        self.path = path
        self.device = device
        self.content: dict[str, Any] = load_checkpoint(path)
        with reading(path):
            self.config: TrainConfig = restore_config(self.content["config"], str(path))
            # That of the machine it is asked on, not of the one it was trained on.
            self.config.data.memory = memory
            # What the states in the checkpoint were found by; the test phase may be asked to go
            # another way.
            self.inference = inference or self.config.inference
            self.unit = record_from(Unit, self.content["unit"], path)
            self.epoch = int(self.content["progress"]["epoch"])
            self.shape = DataShape(**self.content["shape"])
            self.scaler = FeatureScaler.from_dict(self.content["scaler"])
            units = self.content.get("units")
            self.units = None if units is None else Units.from_dict(units)
        folder = path.absolute().parent
        if folder.parent.name == "units" and folder.name != self.unit.name:
            raise UserError(f"{path} is the checkpoint of {self.unit.name}, not of {folder.name}.")

    def rescore(self, data_root: str | None) -> Score:
        """The test part it was scored on in training, from zero and at its states there."""
        started = time.perf_counter()
        dataset = load_dataset(self.config.dataset, data_root, self.unit.seed)
        if dataset.fingerprint() != self.content["dataset_fingerprint"]:
            raise UserError(
                f"{self.path} was trained on other data than {dataset.name} is here: the "
                "fingerprints differ; point data.root at the data it was trained on."
            )
        with reading(self.path):
            split = Split(**self.content["split"])
            parts = make_parts(self.config, dataset, split, self.scaler, self.device)
            propagation = build_propagation(
                self.config,
                self.shape,
                {name: part.batch for name, part in parts.items()},
                like=parts["train"].batch.features,
            )
            rows = RowFiles(self.path.parent)
            propagation.load_state_dict(rows.brought_back(self.content["propagation"]))
        name = scored_part(parts)
        closing = score_part(propagation, name, parts[name], self.inference)
        influence = measure_influence(propagation, parts[name], self.inference)
        return Score(
            evaluation=closing.evaluation,
            metrics=_on_test(closing.from_zero),
            persistent=_on_test(closing.persistent),
            inference={**closing.inference, **_reach(influence)},
            recorded=self.content["progress"]["metrics"],
            influence=influence,
            dataset_fingerprint=dataset.fingerprint(),
            seconds=time.perf_counter() - started,
            items=items_of(self.config, dataset, split, name),
        )

    def score(self, dataset_config: DatasetConfig, data_root: str | None) -> Score:
        """Graphs that were not there in training: the test phase from zero states."""
        started = time.perf_counter()
        vocabulary = Vocabulary.from_dict(self.content["vocabulary"])
        dataset = load_dataset(dataset_config, data_root, self.unit.seed, vocabulary)
        self.check_fit(dataset, f"{dataset.name} does not fit {self.path}: ")
        batch = in_units(self.scaler.apply(dataset.batch), self.units)
        batch = place(batch, self.config, self.device)
        propagation = self.without_states(batch)
        outcome, stats = propagation.infer(batch, self.inference)
        scored = None if dataset.scored is None else dataset.scored.to(self.device)
        judging = Judging(dataset.judged_by(self.config.metric).name, units=self.units)
        part = Part(batch, scored, judging)
        evaluation = Evaluation(part, outcome)
        influence = measure_influence(propagation, part, self.inference)
        return Score(
            evaluation=evaluation,
            metrics=evaluation.metrics(TEST),
            persistent={},
            inference={**solve_metrics(stats), **_reach(influence)},
            recorded={},
            influence=influence,
            dataset_fingerprint=dataset.fingerprint(),
            seconds=time.perf_counter() - started,
        )

    def infer(self, batch: GraphBatch) -> tuple[Outcome, SolveStats | None]:
        """The test phase on graphs that are placed and scaled; their targets are not looked at."""
        return self.without_states(batch).infer(batch, self.inference)

    def without_states(self, batch: GraphBatch) -> Propagation:
        """The trained network, for graphs that were not there in training."""
        with reading(self.path):
            propagation = build_propagation(self.config, self.shape, {}, like=batch.features)
            propagation.network.load_state_dict(self.content["propagation"]["network"])
        return propagation

    def check_fit(self, dataset: Dataset, blame: str = "") -> None:
        """Refuse graphs with other columns or targets than the network has; `blame` begins the
        sentence."""
        found, own = DataShape.of(dataset.batch), self.config.dataset.positional
        for mine, theirs, word in (
            (self.shape.target_level, found.target_level, "targets"),
            (self.shape.task, found.task, "for targets"),
            (self.shape.features - own, found.features - dataset.positional, "node features"),
            (own, dataset.positional, "Laplacian eigenvectors"),
            (self.shape.arc_features, found.arc_features, "arc features"),
            (self.shape.classes, found.classes, self.shape.task),
        ):
            if mine != theirs:
                raise UserError(
                    f"{blame}the graphs have {theirs} {word}, and the network was trained with "
                    f"{mine}."
                )


def _reach(influence: Influence | None) -> dict[str, float]:
    return {} if influence is None else {REACH.name: float(influence.reach)}


def _on_test(values: dict[str, float]) -> dict[str, float]:
    return {f"{TEST}/{name}": value for name, value in values.items()}
