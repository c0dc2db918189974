"""`lpgnn.load`: trained networks, to be asked about graphs that nobody has classified."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.api.inference import Answer, infer
from lpgnn_cli.api.surroundings import undisturbed
from lpgnn_cli.config.root import CHECKPOINTS, TrainConfig
from lpgnn_cli.data.batch import GraphBatch, TargetLevel
from lpgnn_cli.data.datasets.graphs import encode
from lpgnn_cli.data.pyg import from_pyg_without_targets
from lpgnn_cli.data.vocabulary import Vocabulary
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import CLASSES, LABELS, NUMBERS
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.tracking.find import find_checkpoints
from lpgnn_cli.training.device import resolve_device
from lpgnn_cli.training.scoring import TrainedUnit


@dataclass(frozen=True, eq=False)
class Prediction:
    """What networks say of some graphs: one row per graph, or per node where nodes have targets."""

    # By network, one tensor per layer with one row per node.
    states: dict[str, list[Tensor]]
    # By network, how the test phase went: steps, converged.
    inference: dict[str, dict[str, float]]
    # Graph g has the nodes graph_ptr[g] to graph_ptr[g + 1] - 1.
    graph_ptr: Tensor
    # (items,) the class of the greatest probability, as an index from 0; of several labels, a row
    # of 0 and 1.
    classes: Tensor | None = None
    # (items, classes) the mean over the networks.
    probabilities: Tensor | None = None
    # (items, columns) of numbers, which have no classes: the mean over the networks.
    values: Tensor | None = None


class Model:
    """The trained networks of a run, one per unit; their mean is the answer."""

    def __init__(self, units: list[TrainedUnit]) -> None:
        self._units = units

    @property
    def units(self) -> list[str]:
        """The names of the folds that the networks were trained on."""
        return [trained.unit.name for trained in self._units]

    @property
    def config(self) -> TrainConfig:
        return self._units[0].config

    def predict(self, graphs: Any) -> Prediction:
        """Classes, probabilities and states of graphs, found by the test phase from zero.

        `graphs` are a PyTorch Geometric `Data`, several of them, or a `GraphBatch`, with the node
        and arc features of training in the same columns; eigenvectors are added here. Targets are
        not needed, and not looked at.
        """
        batch = self._encode(graphs)
        with undisturbed():
            answers = {trained.unit.name: infer(trained, batch) for trained in self._units}
        return Prediction(
            states={name: answer.states for name, answer in answers.items()},
            inference={name: answer.inference for name, answer in answers.items()},
            graph_ptr=batch.graph_ptr,
            **_answer(self._units[0].shape.task, list(answers.values())),
        )

    def __repr__(self) -> str:
        config = self.config
        networks = f"{len(self._units)} networks" if len(self._units) > 1 else self.units[0]
        return (
            f"<Model {config.dataset.name}, {config.propagation.name}, {config.aggregator.name}, "
            f"{networks}>"
        )

    def _encode(self, graphs: Any) -> GraphBatch:
        trained = self._units[0]
        shape, config = trained.shape, trained.config.dataset
        given = graphs if isinstance(graphs, GraphBatch) else from_pyg_without_targets(graphs)
        batch = _unanswered(given.to("cpu"), shape)
        vocabulary = Vocabulary.from_dict(trained.content["vocabulary"])
        encoded = encode(config, batch, vocabulary).batch
        found = (encoded.features.shape[1] - config.positional, encoded.arc_in.shape[1])
        wanted = (shape.features - config.positional, shape.arc_features)
        for what, mine, theirs in zip(("node", "arc"), wanted, found, strict=True):
            if mine != theirs:
                raise UserError(
                    f"the graphs have {theirs} {what} features, and the network was trained with "
                    f"{mine}."
                )
        return encoded


def load(
    run: str | os.PathLike[str],
    *,
    unit: str | None = None,
    checkpoint: str = "selected",
    device: str = "auto",
) -> Model:
    """The trained networks of a run: of all its folds, or of one `unit` such as `fold-00`.

    `run` is a Run, a run folder, a checkpoint file or an MLflow run id. `checkpoint` is `selected`
    (the one behind the honest accuracy), `last`, or `best_on_test`, which test labels have chosen
    and which only runs with `keep_best_on_test` have.
    """
    if checkpoint not in CHECKPOINTS:
        names = ", ".join(CHECKPOINTS)
        raise UserError(f"checkpoint must be one of {names}, not {checkpoint}.")
    files: list[Path] = find_checkpoints(os.fspath(run), checkpoint, unit, None)
    return of_checkpoints(files, device)


def of_checkpoints(files: Sequence[Path], device: str) -> Model:
    """The networks in these files, asked together."""
    where = resolve_device(device)
    return Model([TrainedUnit(file, None, where) for file in files])


def _unanswered(batch: GraphBatch, shape: DataShape) -> GraphBatch:
    """With targets of the right kind, all zero: nobody looks at them."""
    level: TargetLevel = "graph" if shape.target_level == "graph" else "node"
    size = batch.num_graphs if level == "graph" else batch.num_nodes
    if shape.task == CLASSES:
        targets = torch.zeros(size, dtype=torch.int64)
    else:
        dtype = torch.int64 if shape.task == LABELS else torch.float32
        targets = torch.zeros(size, shape.classes, dtype=dtype)
    return batch.with_targets(targets, level, shape.classes)


def _answer(task: str, answers: list[Answer]) -> dict[str, Tensor]:
    """The fields of a prediction that its targets have, as means over the networks."""
    if task == NUMBERS:
        return {"values": torch.stack([answer.scores for answer in answers]).mean(dim=0)}
    squash = torch.sigmoid if task == LABELS else partial(torch.softmax, dim=1)
    probabilities = torch.stack([squash(answer.scores) for answer in answers]).mean(dim=0)
    found = (probabilities > 0.5).long() if task == LABELS else probabilities.argmax(dim=1)
    return {"classes": found, "probabilities": probabilities}
