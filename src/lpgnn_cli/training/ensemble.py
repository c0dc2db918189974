"""Trained networks, asked together about graphs whose targets nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import Dataset, Vocabulary, load_dataset
from lpgnn_cli.data.asked import Asked
from lpgnn_cli.data.batch import GraphBatch, TargetLevel
from lpgnn_cli.data.datasets.graphs import encode
from lpgnn_cli.data.loading import with_neighbours
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.streaming import stream
from lpgnn_cli.data.targets import Judging
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import LABELS, NUMBERS
from lpgnn_cli.training.closing import solve_metrics
from lpgnn_cli.training.parts import place
from lpgnn_cli.training.predictions import item_violation
from lpgnn_cli.training.scoring import TrainedUnit

# Arrays with one row per item, or one per node.
Columns = dict[str, NDArray[Any]]


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
    # (items,) the mean of |x - f_a(x)| over the networks; zero where nothing constrains states.
    violation: Tensor = field(default_factory=lambda: torch.zeros(0))

    def item_columns(
        self, classes: Sequence[int], scored: Tensor | None = None, offset: int = 0
    ) -> Columns:
        """One row per item that counts, numbered from `offset`; `classes` are what they are called.

        As far as there are such: item, predicted (an index from 0), class (what it stands for),
        probability, violation, probabilities.
        """
        columns: dict[str, Tensor] = {}
        if self.classes is not None and self.classes.ndim == 1 and self.probabilities is not None:
            columns["predicted"] = self.classes
            columns["class"] = torch.tensor(list(classes))[self.classes]
            columns["probability"] = self.probabilities.max(dim=1).values
        elif self.classes is not None:
            columns["predicted"] = self.classes
        elif self.values is not None:
            columns["predicted"] = self.values
        columns["violation"] = self.violation
        if self.probabilities is not None:
            columns["probabilities"] = self.probabilities
        items = torch.arange(len(self.violation)) if scored is None else scored.cpu()
        chosen = {name: column[items].numpy() for name, column in columns.items()}
        return {"item": items.numpy() + offset, **chosen}

    def state_columns(self) -> Columns:
        """One row per node, an array for each network and layer."""
        return {
            f"states/{name}/layer-{k}": state.numpy()
            for name, layers in self.states.items()
            for k, state in enumerate(layers)
        }


class Ensemble:
    """The trained networks of a run, one per unit; their mean is the answer."""

    def __init__(self, units: Sequence[TrainedUnit]) -> None:
        self.units = list(units)
        first = self.units[0]
        self.config: TrainConfig = first.config
        self.shape = first.shape
        self.vocabulary = Vocabulary.from_dict(first.content["vocabulary"])
        level: TargetLevel = "graph" if first.shape.target_level == "graph" else "node"
        self.asked = Asked(level, first.shape.task, first.shape.classes)
        for other in self.units[1:]:
            if (other.shape.task, other.shape.classes) != (self.shape.task, self.shape.classes):
                raise UserError(f"{first.path} and {other.path} have not learnt the same targets.")

    def load(self, config: DatasetConfig, data_root: str | None, nodes: int) -> Iterator[Part]:
        """Graphs in the columns that the networks know, in parts of at most so many nodes or of one
        graph; targets are not looked at.

        Of a file that can be read in this way, no more than a part is in memory.
        """
        first = self.units[0]
        blame = f"{config.name} does not fit {first.path}: "
        datasets = stream(config, self.vocabulary, nodes)
        if datasets is None:
            seed = first.unit.seed
            dataset = load_dataset(config, data_root, seed, self.vocabulary, self.asked)
            first.check_fit(dataset, blame)
            yield from pieces(Part(dataset.batch, dataset.scored), nodes)
            return
        for dataset in datasets:
            asked = replace(dataset, batch=self.asked.blank(dataset.batch))
            part = with_neighbours(config, asked)
            first.check_fit(part, blame)
            yield Part(part.batch)

    def encode(self, batch: GraphBatch) -> Dataset:
        """Graphs in memory, with the node and arc features of training in the same columns."""
        settings = self.config.dataset
        dataset = encode(settings, self.asked.blank(batch), self.vocabulary)
        dataset = with_neighbours(settings, dataset)
        self.units[0].check_fit(dataset)
        return dataset

    @property
    def classes(self) -> list[int]:
        """What the data of training calls the classes, by their indices."""
        known = list(self.vocabulary.classes)
        return known if len(known) == self.asked.classes else list(range(self.asked.classes))

    def predict(self, batch: GraphBatch) -> Prediction:
        """The answers about graphs that are encoded: of the test phase, from zero."""
        answers = {trained.unit.name: _infer(trained, batch) for trained in self.units}
        each = list(answers.values())
        return Prediction(
            states={name: answer.states for name, answer in answers.items()},
            inference={name: answer.inference for name, answer in answers.items()},
            graph_ptr=batch.graph_ptr,
            violation=torch.stack([answer.violation for answer in each]).mean(dim=0),
            **_mean(self.asked.task, [answer.scores for answer in each]),
        )


def pieces(part: Part, nodes: int) -> Iterator[Part]:
    """The graphs in order, in parts of at most so many nodes or of one graph."""
    graph_ptr, first = part.batch.graph_ptr, 0
    while first < part.batch.num_graphs:
        limit = graph_ptr[first] + nodes
        last = max(first + 1, int(torch.searchsorted(graph_ptr, limit, right=True)) - 1)
        yield part.subset(torch.arange(first, last))
        first = last


@dataclass(frozen=True, eq=False)
class _Answer:
    """Scores, the states of every layer, and how they were found; all on the CPU."""

    scores: Tensor
    states: list[Tensor]
    violation: Tensor
    inference: dict[str, float]


def _infer(trained: TrainedUnit, batch: GraphBatch) -> _Answer:
    placed = place(trained.scaler.apply(batch), trained.config, trained.device)
    outcome, stats = trained.infer(placed)
    return _Answer(
        scores=Judging(units=trained.units).in_units(outcome.scores.detach().cpu()),
        states=[x.detach().cpu() for x in outcome.states],
        violation=item_violation(placed, outcome).detach().cpu(),
        inference=solve_metrics(stats),
    )


def _mean(task: str, scores: Sequence[Tensor]) -> dict[str, Any]:
    """The fields of a prediction that its targets have, as means over the networks."""
    if task == NUMBERS:
        return {"values": torch.stack(list(scores)).mean(dim=0)}
    squash = torch.sigmoid if task == LABELS else partial(torch.softmax, dim=1)
    probabilities = torch.stack([squash(of_one) for of_one in scores]).mean(dim=0)
    found = (probabilities > 0.5).long() if task == LABELS else probabilities.argmax(dim=1)
    return {"classes": found, "probabilities": probabilities}
