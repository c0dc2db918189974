"""Folds never overlap, cover everything, keep the classes' shares and are the same everywhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.config.training import HoldoutConfig, KFoldConfig, TransductiveConfig
from lpgnn_cli.data import (
    Dataset,
    GraphBatch,
    Split,
    fingerprint_splits,
    load_dataset,
    make_splits,
)
from lpgnn_cli.data.features import NodeFeatures
from lpgnn_cli.data.stratified import stratified_folds
from lpgnn_cli.errors import UserError

Configs = Callable[..., DatasetConfig]


def kfold(folds: int = 10) -> KFoldConfig:
    return KFoldConfig(name="kfold", seeds=1, workers="auto", folds=folds)


def holdout(**changes: Any) -> HoldoutConfig:
    plain = HoldoutConfig(
        name="holdout", seeds=1, workers="auto", splits=None, validation=0.1, test=0.1, patience=1
    )
    return dataclasses.replace(plain, **changes)


def transductive(supervised: int | None) -> TransductiveConfig:
    return TransductiveConfig(
        name="transductive", seeds=1, workers="auto", supervised_per_class=supervised
    )


def graphs_of(targets: list[int], name: str = "sample") -> Dataset:
    """One node per graph."""
    n = len(targets)
    batch = GraphBatch.from_arcs(
        features=torch.zeros(n, 0),
        source=torch.zeros(0, dtype=torch.int64),
        target=torch.zeros(0, dtype=torch.int64),
        graph_ptr=torch.arange(n + 1),
        targets=torch.tensor(targets),
        target_level="graph",
        num_classes=max(targets) + 1,
    )
    nothing = NodeFeatures(torch.zeros(n, 0), torch.zeros(0, dtype=torch.bool))
    return Dataset.build(name, batch, nothing, positional=0)


def parts(split: Split) -> list[list[int]]:
    found = [split.train, split.test] + ([split.val] if split.val is not None else [])
    return [p.tolist() for p in found]


@pytest.fixture(scope="module")
def mutag(dataset_config: Configs) -> Dataset:
    return load_dataset(dataset_config("mutag"), None, 0)


def test_kfold_is_the_gin_protocol(mutag: Dataset) -> None:
    splits = make_splits(kfold(), mutag, seed=7)
    reference = StratifiedKFold(10, shuffle=True, random_state=7)
    targets = mutag.batch.targets.numpy()
    for split, (train, test) in zip(splits, reference.split(targets, targets), strict=True):
        assert split.train.tolist() == train.tolist()
        assert split.test.tolist() == test.tolist()
        assert split.val is None


def test_splits_are_the_same_on_every_machine(mutag: Dataset) -> None:
    found = {
        "kfold": fingerprint_splits(make_splits(kfold(), mutag, 0))[:16],
        "kfold, seed 1": fingerprint_splits(make_splits(kfold(), mutag, 1))[:16],
        "holdout": fingerprint_splits(make_splits(holdout(), mutag, 0))[:16],
    }
    assert found == KNOWN


KNOWN = {
    "kfold": "724c51529117c3f3",
    "kfold, seed 1": "64de2dc9574a7a0d",
    "holdout": "25282d65810d1726",
}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(5, 30), min_size=2, max_size=4),
    st.integers(2, 5),
    st.integers(0, 2**31),
)
def test_folds_partition_the_graphs(sizes: list[int], folds: int, seed: int) -> None:
    targets = [c for c, size in enumerate(sizes) for _ in range(size)]
    splits = make_splits(kfold(folds), graphs_of(targets), seed)
    assert len(splits) == folds
    assert sorted(i for s in splits for i in s.test.tolist()) == list(range(len(targets)))
    for split in splits:
        assert sorted(chain(*parts(split))) == list(range(len(targets)))
        for c, size in enumerate(sizes):
            share = sum(targets[i] == c for i in split.test.tolist())
            assert size // folds <= share <= -(-size // folds)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(3, 40), min_size=2, max_size=4),
    st.floats(0.01, 0.49),
    st.floats(0.01, 0.49),
    st.integers(0, 2**31),
)
def test_holdout_partitions_every_class(
    sizes: list[int], validation: float, test: float, seed: int
) -> None:
    targets = [c for c, size in enumerate(sizes) for _ in range(size)]
    (split,) = make_splits(holdout(validation=validation, test=test), graphs_of(targets), seed)
    assert sorted(chain(*parts(split))) == list(range(len(targets)))
    for part in parts(split):
        assert {targets[i] for i in part} == set(range(len(sizes))), "no class is left out"
    assert split.val is not None
    for chosen, share in ((split.val, validation), (split.test, test)):
        for c, size in enumerate(sizes):
            assert abs(sum(targets[i] == c for i in chosen.tolist()) - share * size) <= 1.01


def test_generated_tasks_bring_their_own_parts(dataset_config: Configs) -> None:
    dataset = load_dataset(dataset_config("subgraph", graphs=4), None, 0)
    (split,) = make_splits(holdout(), dataset, 0)
    assert split.val is not None
    assert split.train.tolist() == [0, 1, 2, 3]
    assert split.val.tolist() == [4, 5, 6, 7]
    assert split.test.tolist() == [8, 9, 10, 11]


def test_kfold_over_graphs_with_targets_on_nodes(dataset_config: Configs) -> None:
    dataset = load_dataset(dataset_config("subgraph", graphs=4), None, 0)
    splits = make_splits(kfold(3), dataset, 0)
    assert [len(s.test) for s in splits] == [4, 4, 4]


def test_all_nodes_supervised(dataset_config: Configs) -> None:
    karate = load_dataset(dataset_config("karate"), None, 0)
    (split,) = make_splits(transductive(None), karate, 0)
    assert split.train.tolist() == split.test.tolist() == list(range(34))


def test_few_nodes_supervised(dataset_config: Configs) -> None:
    karate = load_dataset(dataset_config("karate"), None, 0)
    (split,) = make_splits(transductive(2), karate, 0)
    assert torch.bincount(karate.batch.targets[split.train]).tolist() == [2, 2, 2, 2]
    assert sorted(chain(*parts(split))) == list(range(34))
    (same,) = make_splits(transductive(2), karate, 0)
    (other,) = make_splits(transductive(2), karate, 1)
    assert same.train.tolist() == split.train.tolist() != other.train.tolist()


@pytest.mark.parametrize(
    ("protocol", "targets", "sentence"),
    [
        (kfold(5), [0] * 4 + [1] * 9, "only 4 members of class 0, fewer than the 5"),
        (holdout(), [0, 0, 1, 1, 1], "only 2 members of class 0, fewer than the 3"),
        (holdout(), [0, 1, 1, 1], "only 1 member of class 0, fewer than the 3"),
        (transductive(1), [0, 0, 1, 1], "has classes of graphs, not of nodes"),
        (holdout(validation=0.5, test=0.5), [0] * 5 + [1] * 5, "leave nothing to train on"),
    ],
)
def test_splits_that_cannot_be_made(protocol: Any, targets: list[int], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make_splits(protocol, graphs_of(targets), 0)


def test_numbers_of_graphs_are_not_called_classes() -> None:
    dataset = graphs_of([0, 1])
    numbers = dataset.batch.with_targets(torch.tensor([[0.5], [1.5]]), "graph", 1)
    with pytest.raises(UserError, match="has numbers of graphs, not of nodes"):
        make_splits(transductive(None), dataclasses.replace(dataset, batch=numbers), 0)


def test_one_graph_cannot_be_folded(dataset_config: Configs) -> None:
    karate = load_dataset(dataset_config("karate"), None, 0)
    for protocol in (kfold(), holdout()):
        with pytest.raises(UserError, match="karate is one graph: choose protocol=transductive"):
            make_splits(protocol, karate, 0)
    with pytest.raises(UserError, match="only 5 members of class 1, fewer than the 6"):
        make_splits(transductive(5), karate, 0)


def write_index(folder: Path, **lines: str) -> None:
    for part, text in lines.items():
        (folder / f"SAMPLE_{part}.index").write_text(text)


def test_index_files(tmp_path: Path) -> None:
    dataset = graphs_of([0, 0, 0, 1, 1, 1])
    write_index(tmp_path, train="0,3\n1,4\n", val="1,4\n2,5\n", test="2,5\n0,3")
    splits = make_splits(holdout(splits=str(tmp_path)), dataset, 0)
    assert [parts(s) for s in splits] == [[[0, 3], [2, 5], [1, 4]], [[1, 4], [0, 3], [2, 5]]]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            {"train": "0,3\n1,x\n"},
            r"SAMPLE_train.index, line 2: 'x' is not a graph index from 0",
        ),
        ({"train": "0,6\n1,4\n"}, r"SAMPLE_train.index, line 1: '6' is not a graph index"),
        ({"train": "0,-1\n1,4\n"}, r"SAMPLE_train.index, line 1: '-1' is not a graph index"),
        ({"train": "0,3\n1,4\n0,3\n"}, r"has 3 folds in SAMPLE_train.index, 2 in SAMPLE_val"),
        ({"train": "0,3\n1,5\n"}, r"line 2 of the SAMPLE index files: graph 5 is in more than one"),
        ({"train": "0\n1,4\n"}, r"line 1 of the SAMPLE index files: graph 3 is in none of"),
        ({"train": ""}, r"SAMPLE_train.index, line 1: '' is not a graph index"),
    ],
)
def test_bad_index_files(tmp_path: Path, lines: dict[str, str], sentence: str) -> None:
    good = {"train": "0,3\n1,4\n", "val": "1,4\n2,5\n", "test": "2,5\n0,3\n"}
    write_index(tmp_path, **{**good, **lines})
    with pytest.raises(UserError, match=sentence):
        make_splits(holdout(splits=str(tmp_path)), graphs_of([0, 0, 0, 1, 1, 1]), 0)


def test_missing_index_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"SAMPLE_train.index cannot be read: protocol.splits must"):
        make_splits(holdout(splits=str(tmp_path)), graphs_of([0, 0, 0, 1, 1, 1]), 0)


@pytest.mark.parametrize(
    ("name", "folds", "sizes"), [("csl", 5, (90, 30, 30)), ("enzymes", 10, (480, 60, 60))]
)
def test_the_public_splits(
    shared_data: Path, dataset_config: Configs, name: str, folds: int, sizes: tuple[int, ...]
) -> None:
    folder = shared_data.parent / "splits"
    if not folder.is_dir():
        pytest.skip(f"the public splits are not at {folder.name} beside the data folder")
    dataset = load_dataset(dataset_config(name), str(shared_data), 0)
    splits = make_splits(holdout(splits=str(folder)), dataset, 0)
    assert len(splits) == folds
    for split in splits:
        assert split.val is not None
        found = (len(split.train), len(split.val), len(split.test))
        assert found == sizes
        for part in (split.train, split.val, split.test):
            per_class = torch.bincount(dataset.batch.targets[part]).tolist()
            assert per_class == [len(part) // dataset.batch.num_classes] * len(per_class)


def test_the_fingerprint_is_that_of_the_folds() -> None:
    split = Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3]))
    known = fingerprint_splits([split])
    same = Split(torch.tensor([1, 0]), torch.tensor([2]), torch.tensor([3]))
    assert fingerprint_splits([same]) == known, "the order inside a part does not matter"
    for other in (
        [split, split],
        [Split(torch.tensor([0, 2]), torch.tensor([1]), torch.tensor([3]))],
        [Split(torch.tensor([0, 1]), torch.tensor([3]), torch.tensor([2]))],
        [Split(torch.tensor([0, 1]), torch.tensor([2, 3]))],
    ):
        assert fingerprint_splits(other) != known


@settings(max_examples=100, deadline=None)
@given(
    strata=st.lists(st.integers(0, 4), min_size=6, max_size=60).filter(
        lambda strata: min(map(strata.count, set(strata))) >= 3
    ),
    folds=st.integers(2, 3),
    seed=st.integers(0, 1000),
)
def test_folds_are_those_of_scikit_learn(strata: list[int], folds: int, seed: int) -> None:
    found = stratified_folds(np.array(strata), folds, seed)
    reference = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for fold, (_, test) in enumerate(reference.split(np.zeros(len(strata)), strata)):
        assert np.flatnonzero(found == fold).tolist() == test.tolist()
