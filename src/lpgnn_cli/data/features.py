"""What a node knows: the choice of node features of a dataset."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lpgnn_cli.data.vocabulary import Vocabulary, one_hot
from lpgnn_cli.errors import UserError

MOST_DEGREES, ALONE = 100, 16


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """(N, F) features, and which of the F columns are continuous."""

    values: Tensor
    continuous: Tensor


@dataclass(frozen=True, eq=False)
class NodeTables:
    """What a dataset can make features of; what it does not have has no columns."""

    labels: Tensor  # (N, columns) int64
    attributes: Tensor  # (N, columns) float32
    degrees: Tensor  # (N,) int64

    def vocabulary(self) -> Vocabulary:
        """The values that occur here."""
        return Vocabulary.of(
            node_labels=self.labels,
            arc_labels=torch.zeros(0, 0),
            degrees=self.degrees,
            classes=(),
        )


def choose_features(
    choice: str, dataset: str, tables: NodeTables, vocabulary: Vocabulary | None = None
) -> NodeFeatures:
    """The features that `dataset.features=` names; `auto` must have been resolved before."""
    nodes = tables.degrees.numel()
    vocabulary = vocabulary or tables.vocabulary()
    if choice == "none":
        return _discrete(torch.zeros(nodes, 0))
    if choice == "constant":
        return _discrete(torch.ones(nodes, 1))
    if choice == "degree":
        return _discrete(one_hot(tables.degrees[:, None], [vocabulary.degrees], "degree"))
    if choice == "degree_classes":
        return _discrete(_in_classes(tables.degrees, vocabulary))
    if choice == "rbf":
        raise UserError(
            f"dataset.features=rbf is for the datasets subgraph and clique, not for {dataset}: "
            "choose auto, degree or constant."
        )
    parts = []
    for part in choice.split("+"):
        table = tables.labels if part == "labels" else tables.attributes
        if table.shape[1] == 0:
            raise UserError(
                f"dataset.features={choice} is unavailable: {dataset} has no node {part}; choose "
                "auto, degree or constant."
            )
        if part == "labels":
            parts.append(_discrete(one_hot(table, vocabulary.node_labels, "node label")))
        else:
            parts.append(NodeFeatures(table, torch.ones(table.shape[1], dtype=torch.bool)))
    return NodeFeatures(
        torch.cat([p.values for p in parts], dim=1), torch.cat([p.continuous for p in parts])
    )


def by_degree(vocabulary: Vocabulary) -> str:
    """What to make of degrees: many different ones are learnt by heart, and unseen graphs have
    others yet."""
    return "degree" if len(vocabulary.degrees) <= MOST_DEGREES else "degree_classes"


def _in_classes(degrees_N: Tensor, vocabulary: Vocabulary) -> Tensor:
    """One indicator for each class of degrees that occurred; others belong to the next below."""
    known = _class_of(torch.tensor(vocabulary.degrees)).unique()
    place = torch.searchsorted(known, _class_of(degrees_N), right=True) - 1
    return torch.nn.functional.one_hot(place.clamp(min=0), len(known)).float()


def _class_of(degrees: Tensor) -> Tensor:
    """Up to ALONE each degree is one of its own; then there are four for every doubling."""
    doublings = (degrees.clamp(min=ALONE) / ALONE).log2()
    return torch.where(degrees < ALONE, degrees, ALONE + (4 * doublings).long())


def continuous_columns(features_NF: Tensor) -> Tensor:
    """Columns of zeros and ones are indicators, which are left as they are."""
    return ((features_NF != 0) & (features_NF != 1)).any(dim=0)


def normalised_rows(features_NF: Tensor) -> NodeFeatures:
    """Each row divided by the sum of its sizes: nodes with many words weigh as those with few."""
    sizes = features_NF.abs().sum(dim=1, keepdim=True)
    return _discrete(features_NF / sizes.where(sizes > 0, torch.ones_like(sizes)))


def radial_basis(values: Tensor, feature_max: int) -> Tensor:
    """(N, feature_max + 1) a bump around each of the integers 0 to feature_max.

    Neighbouring bumps cross at 0.6 of their height, so that noise of a quarter leaves every integer
    recognisable.
    """
    centres = torch.arange(feature_max + 1, dtype=values.dtype)
    return torch.exp(-2.0 * (values[:, None] - centres).square())


def _discrete(values: Tensor) -> NodeFeatures:
    return NodeFeatures(values, torch.zeros(values.shape[1], dtype=torch.bool))
