"""Outer folds with inner parts: drawn, or read from a file in the format of the fair comparison.

A file holds a list with one object per outer fold: `test`, the graphs that assess, and
`model_selection`, a list of inner `train` and `validation` parts (Errica et al., A fair comparison
of graph neural networks for graph classification, 2020).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpgnn_cli.config.training import NestedConfig
from lpgnn_cli.data.public_splits import split_folders
from lpgnn_cli.data.stratified import stratified_folds
from lpgnn_cli.errors import UserError

Indices = npt.NDArray[np.int64]

FAIR = "fair"
SOURCE = "https://github.com/diningphil/gnn-comparison"
# Parts to stop by when a choice is trained again are other ones than those that made the choice.
RETRAIN = 1000


@dataclass(frozen=True)
class OuterFold:
    """Graphs that assess, graphs to train on, and these divided into train and validation."""

    test: Indices
    train: Indices
    inner: list[tuple[Indices, Indices]]
    again: tuple[Indices, Indices]


def outer_folds(protocol: NestedConfig, name: str, strata: Indices, seed: int) -> list[OuterFold]:
    """All outer folds; `strata` is the class of each graph."""
    if protocol.splits is not None:
        parts = _read(protocol.splits, name, strata.size)
    else:
        parts = list(_draw(protocol, strata, seed))
    return [
        OuterFold(
            test=test,
            train=(train := np.setdiff1d(np.arange(strata.size), test)),
            inner=inner,
            again=hold_out(train, strata, protocol.validation, seed + RETRAIN + fold),
        )
        for fold, (test, inner) in enumerate(parts)
    ]


def count_folds(protocol: NestedConfig, name: str) -> int:
    """How many outer folds there will be."""
    return protocol.folds if protocol.splits is None else len(_load(protocol.splits, name)[1])


def _draw(
    protocol: NestedConfig, strata: Indices, seed: int
) -> Iterator[tuple[Indices, list[tuple[Indices, Indices]]]]:
    tested_in = stratified_folds(strata, protocol.folds, seed)
    for fold in range(protocol.folds):
        test, train = np.flatnonzero(tested_in == fold), np.flatnonzero(tested_in != fold)
        if protocol.inner_folds is None:
            yield test, [hold_out(train, strata, protocol.validation, seed + fold)]
            continue
        held_in = stratified_folds(strata[train], protocol.inner_folds, seed + fold)
        inner = range(protocol.inner_folds)
        yield test, [(train[held_in != k], train[held_in == k]) for k in inner]


def hold_out(members: Indices, strata: Indices, share: float, seed: int) -> tuple[Indices, Indices]:
    """The members without a share of each class, at least one graph of each, and that share."""
    random = np.random.RandomState(seed)
    held = []
    for stratum in np.unique(strata[members]):
        own = random.permutation(members[strata[members] == stratum])
        held.append(own[: max(1, round(own.size * share))])
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(members, out), out


def _read(
    splits: str, name: str, graphs: int
) -> list[tuple[Indices, list[tuple[Indices, Indices]]]]:
    path, raw = _load(splits, name)
    try:
        return [_check(path, number, fold, graphs) for number, fold in enumerate(raw, start=1)]
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, UserError):
            raise
        raise _unreadable(path) from error


def _load(splits: str, name: str) -> tuple[Path, list[Any]]:
    path = _find(name) if splits == FAIR else Path(splits)
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path) from error
    if not isinstance(raw, list) or len(raw) < 2:
        raise _unreadable(path)
    return path, raw


def _unreadable(path: Path) -> UserError:
    return UserError(
        f"{path} is no file of nested splits: it must hold a list with one object per outer "
        "fold, which has `test` and `model_selection`, a list of `train` and `validation`."
    )


def _find(name: str) -> Path:
    file = f"{name.upper()}_splits.json"
    places = [folder / FAIR / file for folder in split_folders()]
    for place in places:
        if place.is_file():
            return place
    raise UserError(
        f"the fair splits of {name} are not on disk: put {file} of {SOURCE} into "
        f"{places[0].parent}, or set protocol.splits to a file of your own, or to null."
    )


def _check(
    path: Path, number: int, fold: dict[str, Any], graphs: int
) -> tuple[Indices, list[tuple[Indices, Indices]]]:
    test = np.array(fold["test"], dtype=np.int64)
    inner = [
        (np.array(part["train"], dtype=np.int64), np.array(part["validation"], dtype=np.int64))
        for part in fold["model_selection"]
    ]
    for train, validation in inner:
        everything = np.concatenate([test, train, validation])
        if np.unique(everything).size < everything.size:
            raise UserError(f"{path}, outer fold {number}: a graph is in more than one part.")
        if min(map(len, (test, train, validation))) == 0:
            raise UserError(f"{path}, outer fold {number}: a part is empty.")
        if everything.min() < 0 or everything.max() >= graphs:
            raise UserError(
                f"{path}, outer fold {number}: graphs are numbered from 0 to {graphs - 1} here."
            )
    if not inner:
        raise UserError(f"{path}, outer fold {number}: model_selection is empty.")
    return test, inner
