"""Outer folds and their inner parts: nothing that assesses is ever selected by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpgnn_cli.config.compose import compose
from lpgnn_cli.data import load_dataset, make_splits
from lpgnn_cli.data.splits import NestedSplit
from lpgnn_cli.errors import UserError

NESTED = ("dataset=mutag", "protocol=nested", "protocol.folds=4")


def splits(*words: str) -> list[NestedSplit]:
    config = compose("train", [*NESTED, *words])
    dataset = load_dataset(config.dataset, None, 0)
    found = make_splits(config.protocol, dataset, 0)
    assert all(isinstance(split, NestedSplit) for split in found)
    return [split for split in found if isinstance(split, NestedSplit)]


def sets(split: NestedSplit) -> tuple[set[int], set[int], set[int]]:
    assert split.val is not None
    return set(split.train.tolist()), set(split.val.tolist()), set(split.test.tolist())


@pytest.mark.parametrize("inner", [None, 3])
def test_who_selects_never_sees_the_outer_test_graphs(inner: int | None) -> None:
    assess = {split.fold: sets(split) for split in splits("protocol.stage=assess")}
    select = splits("protocol.stage=select", f"protocol.inner_folds={inner or 'null'}")
    assert len(select) == 4 * (inner or 1)
    for split in select:
        train, val, scored = sets(split)
        assert scored == val
        assert not train & val
        _, _, test = assess[split.fold]
        assert not (train | val) & test
        assert train | val | test == set(range(188))
        if inner:
            assert split.inner in range(3)


def test_the_outer_folds_are_those_of_kfold_and_each_graph_assesses_once() -> None:
    config = compose("train", ["dataset=mutag", "protocol=kfold", "protocol.folds=4"])
    dataset = load_dataset(config.dataset, None, 0)
    kfold = make_splits(config.protocol, dataset, 0)
    nested = splits("protocol.stage=assess")
    assert [s.test.tolist() for s in nested] == [s.test.tolist() for s in kfold]
    for split in nested:
        train, val, test = sets(split)
        assert len(train) + len(val) + len(test) == 188
        share = len(val) / (len(train) + len(val))
        assert share == pytest.approx(0.1, abs=0.02)
        both = dataset.batch.targets[split.val].float().mean()
        assert float(both) == pytest.approx(float(dataset.batch.targets.float().mean()), abs=0.05)


def test_one_outer_fold_may_be_asked_for() -> None:
    (only,) = splits("protocol.stage=assess", "protocol.fold=2")
    assert only.fold == 2
    assert sets(only) == sets(splits("protocol.stage=assess")[2])
    with pytest.raises(UserError, match="the outer folds go from 0 to 3"):
        splits("protocol.fold=4")


def write(path: Path, folds: object) -> str:
    path.write_text(json.dumps(folds), encoding="utf-8")
    return f"protocol.splits={path}"


def own_folds() -> list[dict[str, Any]]:
    order = np.random.RandomState(1).permutation(188).tolist()
    thirds = [order[:60], order[60:120], order[120:]]
    return [
        {
            "test": thirds[k],
            "model_selection": [
                {"train": thirds[k - 1], "validation": thirds[k - 2]},
                {"train": thirds[k - 2], "validation": thirds[k - 1]},
            ],
        }
        for k in range(3)
    ]


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    folds = own_folds()
    word = write(tmp_path / "mine.json", folds)
    select = splits(word, "protocol.stage=select")
    assert [(split.fold, split.inner) for split in select] == [
        (fold, inner) for fold in range(3) for inner in range(2)
    ]
    assert select[3].val is not None
    assert select[3].val.tolist() == folds[1]["model_selection"][1]["validation"]
    assert [s.test.tolist() for s in splits(word, "protocol.stage=assess")] == [
        fold["test"] for fold in folds
    ]


def test_the_fair_splits_are_found_by_the_name_of_the_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_SPLITS", str(tmp_path))
    with pytest.raises(UserError, match=r"put MUTAG_splits\.json of"):
        splits("protocol.splits=fair")
    (tmp_path / "fair").mkdir()
    write(tmp_path / "fair" / "MUTAG_splits.json", own_folds())
    assert len(splits("protocol.splits=fair")) == 3


def test_files_that_cannot_be_used_get_one_sentence(tmp_path: Path) -> None:
    twice, far, empty = own_folds(), own_folds(), own_folds()
    twice[1]["test"] = [*twice[1]["test"], twice[0]["test"][0]]
    far[0]["test"] = [*far[0]["test"][:-1], 188]
    empty[2]["model_selection"] = []
    cases = {
        "outer fold 2: a graph is in more than one part": twice,
        "outer fold 1: graphs are numbered from 0 to 187": far,
        "outer fold 3: model_selection is empty": empty,
        "is no file of nested splits": [{"test": [0]}, {"test": [1]}],
    }
    for sentence, folds in cases.items():
        with pytest.raises(UserError, match=sentence):
            splits(write(tmp_path / "bad.json", folds))
    with pytest.raises(UserError, match="is no file of nested splits"):
        splits(f"protocol.splits={tmp_path / 'nowhere.json'}")


def test_graphs_that_are_generated_anew_cannot_be_nested() -> None:
    config = compose("train", ["dataset=clique", "protocol=nested"])
    dataset = load_dataset(config.dataset, None, 0)
    with pytest.raises(UserError, match="is generated anew for every seed"):
        make_splits(config.protocol, dataset, 0)
