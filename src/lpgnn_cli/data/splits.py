"""Which graphs (or nodes) are trained on, watched and scored: the folds of a protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lpgnn_cli.config.training import (
    HoldoutConfig,
    KFoldConfig,
    MasksConfig,
    NestedConfig,
    ProtocolConfig,
    TransductiveConfig,
)
from lpgnn_cli.data.batch import hash_tensor
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.nested_splits import outer_folds
from lpgnn_cli.data.public_splits import PUBLIC, public_splits
from lpgnn_cli.data.stratified import stratified_folds
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import count
from lpgnn_cli.metrics import CLASSES

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of graphs; of nodes for the protocols transductive and masks."""

    train: Tensor
    test: Tensor
    val: Tensor | None = None


@dataclass(frozen=True, eq=False)
class NestedSplit(Split):
    """Of an outer fold, and which of its inner parts if it has several."""

    fold: int = 0
    inner: int | None = None

    def without_validation(self) -> NestedSplit:
        """With the validation part among the training graphs: nothing is stopped by it."""
        assert self.val is not None
        return replace(self, train=torch.cat([self.train, self.val]).sort().values, val=None)


def make_splits(protocol: ProtocolConfig, dataset: Dataset, seed: int) -> list[Split]:
    """The folds of a protocol, the same on every machine for the same seed."""
    if isinstance(protocol, TransductiveConfig):
        return _transductive(protocol, dataset, seed)
    if isinstance(protocol, MasksConfig):
        return _masks(protocol, dataset, seed)
    if dataset.batch.num_graphs == 1:
        raise UserError(f"{dataset.name} is one graph: choose protocol=transductive or masks.")
    if isinstance(protocol, KFoldConfig):
        return _kfold(protocol, dataset, seed)
    if isinstance(protocol, NestedConfig):
        return list(_nested(protocol, dataset, seed))
    assert isinstance(protocol, HoldoutConfig), type(protocol).__name__
    if protocol.splits == PUBLIC:
        return read_splits(public_splits(dataset.name), dataset)
    if protocol.splits is not None:
        return read_splits(Path(protocol.splits), dataset)
    if dataset.parts is not None:
        return [Split(dataset.parts["train"], dataset.parts["test"], dataset.parts["val"])]
    return [_holdout(dataset, _strata(dataset), protocol.validation, protocol.test, seed)]


def fingerprint_splits(splits: Sequence[Split]) -> str:
    """sha256 of the folds in order; inside a part the order of the items does not count."""
    digest = hashlib.sha256()
    for split in splits:
        for name, part in (("train", split.train), ("val", split.val), ("test", split.test)):
            if part is not None:
                hash_tensor(digest, name, part.sort().values)
    return digest.hexdigest()


def read_splits(folder: Path, dataset: Dataset) -> list[Split]:
    """Folds from NAME_train.index, NAME_val.index and NAME_test.index, one fold per line."""
    name = dataset.name.upper()
    graphs = dataset.batch.num_graphs
    parts = {p: _read_index(folder / f"{name}_{p}.index", graphs) for p in ("train", "val", "test")}
    counts = {p: len(folds) for p, folds in parts.items()}
    if len(set(counts.values())) != 1:
        raise UserError(
            f"{folder} has {counts['train']} folds in {name}_train.index, {counts['val']} in "
            f"{name}_val.index and {counts['test']} in {name}_test.index: they must be as many."
        )
    splits = []
    for line, (train, val, test) in enumerate(zip(*parts.values(), strict=True), start=1):
        everything = np.concatenate([train, val, test])
        values, times = np.unique(everything, return_counts=True)
        if times.max() > 1:
            raise UserError(
                f"{folder}, line {line} of the {name} index files: graph {values[times > 1][0]} is "
                "in more than one place; train, val and test must not overlap."
            )
        if values.size < graphs:
            missing = np.setdiff1d(np.arange(graphs), values)[0]
            raise UserError(
                f"{folder}, line {line} of the {name} index files: graph {missing} is in none of "
                f"train, val and test, which must cover all {graphs} graphs."
            )
        splits.append(Split(torch.from_numpy(train), torch.from_numpy(test), torch.from_numpy(val)))
    return splits


def _read_index(path: Path, graphs: int) -> list[Indices]:
    try:
        lines = path.read_text(encoding="utf-8").rstrip().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} cannot be read: protocol.splits must be a folder with an index file for "
            "train, val and test, named after the dataset in capitals."
        ) from error
    folds = []
    for number, line in enumerate(lines, start=1):
        tokens = [t.strip() for t in line.split(",")]
        wrong = [t for t in tokens if not _is_index(t, graphs)]
        if wrong:
            shown = wrong[0][:40]
            raise UserError(
                f"{path}, line {number}: {shown!r} is not a graph index from 0 to {graphs - 1}."
            )
        folds.append(np.array(tokens, dtype=np.int64))
    return folds


def _is_index(token: str, graphs: int) -> bool:
    """Python refuses to read numbers of thousands of digits."""
    return token.isascii() and token.isdigit() and len(token) < 20 and int(token) < graphs


def _strata(dataset: Dataset) -> Indices:
    """The class of each graph; graphs that have none are all of one stratum."""
    batch = dataset.batch
    if batch.target_level == "graph" and batch.task == CLASSES:
        return batch.targets.cpu().numpy()
    return np.zeros(batch.num_graphs, dtype=np.int64)


def _kfold(protocol: KFoldConfig, dataset: Dataset, seed: int) -> list[Split]:
    strata = _strata(dataset)
    _check_smallest(dataset, strata, protocol.folds, f"protocol.folds={protocol.folds}")
    fold_of_graph = stratified_folds(strata, protocol.folds, seed)
    return [
        Split(
            torch.from_numpy(np.flatnonzero(fold_of_graph != fold)),
            torch.from_numpy(np.flatnonzero(fold_of_graph == fold)),
        )
        for fold in range(protocol.folds)
    ]


def _nested(protocol: NestedConfig, dataset: Dataset, seed: int) -> list[NestedSplit]:
    """To select: inner parts, where the validation part is scored and the outer test part is not
    even there. To assess: all outer training graphs, with a part of them to select an epoch by."""
    if dataset.seeded:
        raise UserError(
            f"{dataset.name} is generated anew for every seed: protocol=nested needs graphs that "
            "stay; choose protocol=holdout."
        )
    strata = _strata(dataset)
    if protocol.splits is None:
        needed = protocol.folds * (protocol.inner_folds or 1)
        _check_smallest(dataset, strata, needed, f"protocol.folds={protocol.folds}")
    folds = outer_folds(protocol, dataset.name, strata, seed)
    if protocol.fold is not None and protocol.fold >= len(folds):
        raise UserError(f"protocol.fold={protocol.fold}: there are {len(folds)} outer folds.")
    splits = []
    for number, fold in enumerate(folds):
        if protocol.fold not in (None, number):
            continue
        if not protocol.selects:
            splits.append(_split(*fold.again, fold.test, number, None))
            continue
        for place, (train, val) in enumerate(fold.inner):
            splits.append(_split(train, val, val, number, place if len(fold.inner) > 1 else None))
    return splits


def _split(
    train: Indices, val: Indices, test: Indices, fold: int, inner: int | None
) -> NestedSplit:
    tensors = [torch.from_numpy(indices) for indices in (train, test, val)]
    return NestedSplit(tensors[0], tensors[1], tensors[2], fold, inner)


def _holdout(dataset: Dataset, strata: Indices, validation: float, test: float, seed: int) -> Split:
    """Every class is divided by the same shares, with at least one member in each part."""
    if validation + test >= 1:
        raise UserError(
            f"protocol.validation={validation:g} and protocol.test={test:g} leave nothing to train "
            "on: their sum must be less than 1."
        )
    _check_smallest(dataset, strata, 3, "train, validation and test")
    random = np.random.RandomState(seed)
    parts: dict[str, list[Indices]] = {"train": [], "val": [], "test": []}
    for stratum in np.unique(strata):
        members = random.permutation(np.flatnonzero(strata == stratum))
        watched = max(1, round(members.size * validation))
        tested = max(1, round(members.size * test))
        while watched + tested >= members.size:
            if watched > tested:
                watched -= 1
            else:
                tested -= 1
        parts["val"].append(members[:watched])
        parts["test"].append(members[watched : watched + tested])
        parts["train"].append(members[watched + tested :])
    joined = {k: torch.from_numpy(np.sort(np.concatenate(v))) for k, v in parts.items()}
    return Split(**joined)


def _transductive(protocol: TransductiveConfig, dataset: Dataset, seed: int) -> list[Split]:
    """Supervised nodes and the others; where all are supervised the same nodes are scored."""
    batch = dataset.batch
    _check_level(dataset)
    if protocol.supervised_per_class is None:
        everyone = torch.arange(batch.num_nodes)
        return [Split(train=everyone, test=everyone)]
    if batch.task != CLASSES:
        raise UserError(
            f"protocol.supervised_per_class is for classes, and {dataset.name} has {batch.task}: "
            "choose protocol=masks."
        )
    wanted = protocol.supervised_per_class
    targets = batch.targets.cpu().numpy()
    _check_smallest(
        dataset, targets, wanted + 1, f"protocol.supervised_per_class={wanted} and one to score"
    )
    random = np.random.RandomState(seed)
    chosen = [random.permutation(np.flatnonzero(targets == c))[:wanted] for c in np.unique(targets)]
    train = np.sort(np.concatenate(chosen))
    test = np.setdiff1d(np.arange(targets.size), train)
    return [Split(train=torch.from_numpy(train), test=torch.from_numpy(test))]


def _masks(protocol: MasksConfig, dataset: Dataset, seed: int) -> list[Split]:
    """The splits that a dataset brings along, or random ones."""
    _check_level(dataset)
    if protocol.validation is not None and protocol.test is not None:
        nodes = torch.arange(dataset.batch.num_nodes) if dataset.scored is None else dataset.scored
        strata = np.zeros(len(nodes), dtype=np.int64)
        if dataset.batch.task == CLASSES:
            strata = dataset.batch.targets[nodes].cpu().numpy()
        drawn = [
            _holdout(dataset, strata, protocol.validation, protocol.test, seed + fold)
            for fold in range(protocol.folds or 1)
        ]
        return [
            Split(
                *(nodes[part] for part in (split.train, split.test, split.val) if part is not None)
            )
            for split in drawn
        ]
    masks = dataset.masks
    if masks is None:
        raise UserError(
            f"{dataset.name} has no masks of training, validation and test nodes: draw them by "
            "protocol.validation=0.2 protocol.test=0.2, for example."
        )
    there = masks.train.shape[0]
    if protocol.folds is not None and protocol.folds > there:
        raise UserError(
            f"protocol.folds={protocol.folds}: {dataset.name} has {there} splits of its nodes."
        )
    return [
        Split(*(mask[k].nonzero().flatten() for mask in (masks.train, masks.test, masks.val)))
        for k in range(protocol.folds or there)
    ]


def _check_level(dataset: Dataset) -> None:
    if dataset.batch.target_level != "node":
        raise UserError(
            f"{dataset.name} has {dataset.batch.task} of graphs, not of nodes: choose "
            "protocol=kfold or holdout."
        )


def _check_smallest(dataset: Dataset, strata: Indices, needed: int, reason: str) -> None:
    classes, counts = np.unique(strata, return_counts=True)
    smallest = int(counts.argmin())
    if counts[smallest] < needed:
        raise UserError(
            f"{dataset.name} has only {count(int(counts[smallest]), 'member')} of class "
            f"{classes[smallest]}, fewer than the {needed} that {reason} needs."
        )
