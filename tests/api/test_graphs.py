"""Graphs in memory and in files: trained on, resumed, and scored again later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lpgnn_cli as lpgnn
from lpgnn_cli.cli import main
from lpgnn_cli.data.datasets.graphs import read_graphs

from ..conftest import present

MakeGraphs = Callable[..., list[Any]]


def test_a_run_on_graphs_in_memory_comes_back_from_its_folder(
    trained: lpgnn.Run, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trained.config["protocol"]["name"] == "kfold"
    stored = Path(trained.config["dataset"]["path"])
    assert stored.parent == runs / "graphs"
    resumed = lpgnn.train(resume=trained, epochs=4)
    assert [fold.epochs for fold in resumed.folds] == [4, 4]
    assert main(["eval", f"run={trained.folder}", "tracking=none", "threads=1"]) == 0
    assert f"{100 * resumed.accuracy:.1f}" in capsys.readouterr().out


def test_the_same_graphs_are_stored_once(
    trained: lpgnn.Run, small: dict[str, Any], make_graphs: MakeGraphs, runs: Path
) -> None:
    again = lpgnn.train(dataset=lpgnn.from_pyg(make_graphs()), **small)
    assert again.summary["honest/accuracy_mean"] == trained.accuracy
    lpgnn.train(dataset=make_graphs(count=14), **small)
    assert len(list((runs / "graphs").iterdir())) == 2


def test_graphs_that_can_be_gone_through_once(
    trained: lpgnn.Run, small: dict[str, Any], make_graphs: MakeGraphs, tmp_path: Path
) -> None:
    again = lpgnn.train(dataset=iter(make_graphs()), **small)
    assert again.summary["honest/accuracy_mean"] == trained.accuracy
    lpgnn.save_graphs(iter(make_graphs()), tmp_path / "graphs.npz")
    assert read_graphs(tmp_path / "graphs.npz")[0].num_graphs == len(make_graphs())


def test_graphs_of_one_class_have_nothing_to_learn(
    small: dict[str, Any], make_graphs: MakeGraphs
) -> None:
    graphs = make_graphs()
    for graph in graphs:
        graph.y = torch.tensor([1])
    with pytest.raises(lpgnn.UserError, match="all targets are of class 1"):
        lpgnn.train(dataset=graphs, **small)


def test_classes_of_nodes(small: dict[str, Any], make_graphs: MakeGraphs) -> None:
    several = lpgnn.train(dataset=make_graphs(level="node"), **small)
    assert several.config["protocol"]["name"] == "kfold"
    small["protocol"] = {"supervised_per_class": 1, "workers": 1}
    one = lpgnn.train(dataset=make_graphs(level="node")[0], **small)
    assert one.config["protocol"]["name"] == "transductive"
    assert [fold.name for fold in one.folds] == ["fold-00"]


def test_masks_of_nodes_become_folds(
    small: dict[str, Any], make_graphs: MakeGraphs, runs: Path
) -> None:
    small["protocol"] = {"workers": 1}
    (graph,) = make_graphs(level="node", count=1)
    places = torch.arange(5)[:, None]
    graph.train_mask = places % 5 < torch.tensor([2, 3])
    graph.val_mask = (places == 3) & torch.tensor([True, True])
    graph.test_mask = places % 5 == 4
    with pytest.raises(lpgnn.UserError, match="the masks must be as many for each part"):
        lpgnn.train(dataset=graph, **small)
    graph.test_mask = graph.test_mask.expand(5, 2)
    run = lpgnn.train(dataset=graph, **small)
    assert run.config["protocol"]["name"] == "masks"
    assert [fold.name for fold in run.folds] == ["fold-00", "fold-01"]
    assert lpgnn.train(resume=run, epochs=4).folds[1].epochs == 4
    graph.val_mask, graph.train_mask = places == 2, places < 2
    graph.test_mask = places > 2
    one = lpgnn.train(dataset=graph, **small)
    assert [fold.name for fold in one.folds] == ["fold-00"]
    assert len(list((runs / "graphs").iterdir())) == 2, "other masks are another file"
    del graph.val_mask
    with pytest.raises(lpgnn.UserError, match="lacks val_masks"):
        lpgnn.train(dataset=graph, **small)


def test_a_file_holds_what_was_saved(make_graphs: MakeGraphs, tmp_path: Path) -> None:
    for level in ("graph", "node"):
        batch = lpgnn.from_pyg(make_graphs(level=level))
        lpgnn.save_graphs(batch, tmp_path / "mine.npz")
        stored, _ = read_graphs(tmp_path / "mine.npz")
        assert stored.fingerprint() == batch.fingerprint()


def test_numpy_writes_such_a_file_and_a_notebook_may_rewrite_it(
    small: dict[str, Any], tmp_path: Path
) -> None:
    arrays: dict[str, Any] = {
        "features": np.random.default_rng(0).normal(size=(24, 1)),
        "source": np.arange(24),
        "target": np.arange(24) // 3 * 3,
        "graph_ptr": np.arange(0, 25, 3),
        "targets": np.arange(8) % 2,
    }
    np.savez(tmp_path / "mine.npz", **arrays)
    small |= {"dataset": "graphs", "dataset.path": "mine.npz"}
    first = lpgnn.train(**small)
    batch, _ = read_graphs(tmp_path / "mine.npz")
    assert (batch.num_graphs, batch.num_arcs, batch.target_level) == (8, 24, "graph")
    np.savez(tmp_path / "mine.npz", **arrays | {"features": 3 * arrays["features"] ** 2})
    second = lpgnn.train(**small)
    assert first.metrics("fold-00")[0]["train/loss"] != second.metrics("fold-00")[0]["train/loss"]
    with pytest.raises(lpgnn.UserError, match="was trained on other data"):
        lpgnn.train(resume=first, epochs=4)


def test_features_of_the_structure(small: dict[str, Any], make_graphs: MakeGraphs) -> None:
    run = lpgnn.train(dataset=make_graphs(), **small | {"dataset.features": "degree"})
    graphs = make_graphs(level=None)
    for graph in graphs:
        graph.num_nodes, graph.x = graph.num_nodes, None
    assert present(lpgnn.load(run).predict(graphs).classes).shape == (12,)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"targets": None}, "lacks the array targets: only `lpgnn predict` reads"),
        ({"source": None, "targets": None}, "lacks the arrays source, targets.$"),
        ({"features": None, "graph_ptr": np.array([-7, -5])}, "no graph can have -5 nodes"),
        ({"source": np.arange(24) + 20}, "arcs must join nodes 0 to N - 1"),
        ({"target": np.arange(24.0)}, "target must be a vector of whole numbers"),
        ({"targets": np.arange(5)}, "targets must be one"),
        ({"features": np.full((24, 1), np.nan)}, "features has a value that is no finite number"),
        ({"num_classes": 10**9}, "num_classes must be one whole number from 1 to 65,536"),
        ({"num_classes": 2.5}, "num_classes must be one whole number"),
        ({"num_classes": [2, 2]}, "num_classes must be one whole number"),
        ({"target_level": "edge"}, "target_level must be graph or node, not edge"),
        ({"features": np.array([[object()]] * 24)}, "is not an npz file of plain arrays"),
    ],
)
def test_a_file_that_cannot_be_used(change: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "features": np.zeros((24, 1)),
        "source": np.arange(24),
        "target": np.arange(24),
        "graph_ptr": np.arange(0, 25, 3),
        "targets": np.arange(8) % 2,
        **change,
    }
    np.savez(tmp_path / "bad.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(lpgnn.UserError, match=sentence):
        read_graphs(tmp_path / "bad.npz")


def test_files_that_are_not_there_or_something_else(tmp_path: Path) -> None:
    with pytest.raises(lpgnn.UserError, match="there is no such file"):
        read_graphs(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(lpgnn.UserError, match="is not an npz file of plain arrays"):
        read_graphs(tmp_path / "text.npz")


def test_what_cannot_be_trained_on(pyg: Any, make_graphs: MakeGraphs) -> None:
    odd = make_graphs()
    odd[3].x = torch.zeros(odd[3].num_nodes, 5)
    for graphs, sentence in (
        ([], "at least one graph"),
        (3, "must be PyTorch Geometric graphs"),
        ([1, 2], "must be PyTorch Geometric graphs"),
        (make_graphs(level=None), "a graph has no y"),
        (odd, "different numbers of columns in x: 2 and 5"),
    ):
        with pytest.raises(lpgnn.UserError, match=sentence):
            lpgnn.train(dataset=graphs)
