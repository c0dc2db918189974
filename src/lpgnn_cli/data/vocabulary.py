"""Which values the columns of one-hot features and the class indices stand for.

A trained network keeps its vocabulary, so that unseen graphs get the same columns for the same
values, however many of them they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.errors import UserError

Values = tuple[int, ...]


@dataclass(frozen=True)
class Vocabulary:
    """The values of each column of labels, ascending, and those of degrees and classes."""

    node_labels: tuple[Values, ...] = ()
    arc_labels: tuple[Values, ...] = ()
    degrees: Values = ()
    classes: Values = ()

    @classmethod
    def of(
        cls,
        *,
        node_labels: Tensor,
        arc_labels: Tensor,
        degrees: Tensor,
        classes: Sequence[int],
    ) -> Vocabulary:
        return cls(
            node_labels=tuple(_values(column) for column in node_labels.T),
            arc_labels=tuple(_values(column) for column in arc_labels.T),
            degrees=_values(degrees),
            classes=tuple(int(c) for c in classes),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Vocabulary:
        return cls(
            node_labels=tuple(tuple(column) for column in raw["node_labels"]),
            arc_labels=tuple(tuple(column) for column in raw["arc_labels"]),
            degrees=tuple(raw["degrees"]),
            classes=tuple(raw["classes"]),
        )


def one_hot(labels: Tensor, columns: Sequence[Values], what: str) -> Tensor:
    """One indicator column for each value of each column of labels."""
    if labels.shape[1] != len(columns):
        raise UserError(
            f"there are {labels.shape[1]} columns of {what}s, and the network was trained with "
            f"{len(columns)}."
        )
    indicators = [
        torch.nn.functional.one_hot(indices(column, values, what), len(values)).float()
        for column, values in zip(labels.T, columns, strict=True)
    ]
    return torch.cat(indicators, dim=1) if indicators else torch.zeros(labels.shape[0], 0)


def indices(column: Tensor, values: Values, what: str) -> Tensor:
    """The position of each entry among the values."""
    known = torch.tensor(values, dtype=column.dtype)
    position = torch.searchsorted(known, column.contiguous())
    found = known[position.clamp(max=len(values) - 1)] == column
    if not bool(found.all()):
        stranger = int(column[~found][0])
        hint = " Networks that are trained with dataset.features=degree_classes take all degrees."
        raise UserError(
            f"the {what} {stranger} was not there when the network was trained."
            + (hint if what == "degree" else "")
        )
    return position


def _values(column: Tensor) -> Values:
    return tuple(int(value) for value in column.unique())
