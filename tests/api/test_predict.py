"""`lpgnn.load(run).predict(graphs)`: what `lpgnn eval` says of the same graphs."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import lpgnn_cli as lpgnn
from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import compose
from lpgnn_cli.data import load_dataset

from ..conftest import present

MakeGraphs = Callable[..., list[Any]]
CASES: dict[str, dict[str, Any]] = {
    "lagrangian": {"layers": 2},
    "one shot": {"propagation.updates": "one_shot"},
    "anderson": {"inference": "anderson", "inference.steps": 20},
    "frozen": {"propagation.states": "frozen"},
    "fixed point": {"propagation": "fixed_point"},
    "layers": {"propagation": "layers", "aggregator": "gin", "layers": 2},
    "eigenvectors": {"dataset.positional": 2},
    "double": {"precision": "float64"},
}


def evaluated(run: lpgnn.Run, words: list[str], runs: Path) -> dict[str, list[dict[str, str]]]:
    """The predictions of `lpgnn eval`, by unit."""
    before = set(runs.glob("eval/*/*"))
    assert main(["eval", f"run={run.folder}", "tracking=none", "threads=1", *words]) == 0
    (folder,) = set(runs.glob("eval/*/*")) - before
    found = {}
    for path in sorted(folder.glob("units/*/predictions.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found[path.parent.name] = list(csv.DictReader(file))
    return found


@pytest.mark.parametrize("case", CASES)
def test_predictions_are_those_of_eval(
    case: str, runs: Path, small: dict[str, Any], make_graphs: MakeGraphs, tmp_path: Path
) -> None:
    settings = {
        k: v for k, v in small.items() if k != "inference" or "inference" not in CASES[case]
    }
    run = lpgnn.train(dataset=make_graphs(), **settings, **CASES[case])
    unseen = make_graphs(count=15)
    lpgnn.save_graphs(unseen, tmp_path / "unseen.npz")
    words = ["dataset=graphs", f"dataset.path={tmp_path / 'unseen.npz'}"]
    words += [f"dataset.positional={CASES[case].get('dataset.positional', 0)}"]
    found = evaluated(run, words, runs)
    assert list(found) == [fold.name for fold in run.folds]
    for unit, rows in found.items():
        prediction = lpgnn.load(run, unit=unit).predict(make_graphs(count=15, level=None))
        assert present(prediction.classes).tolist() == [int(row["predicted"]) for row in rows]
        largest = present(prediction.probabilities).max(dim=1).values.tolist()
        assert largest == [float(row["probability"]) for row in rows]


def test_all_folds_give_the_mean_and_their_states(
    trained: lpgnn.Run, make_graphs: MakeGraphs
) -> None:
    graphs = make_graphs(count=3, level=None)
    model = lpgnn.load(trained)
    assert model.units == ["fold-00", "fold-01"]
    together = model.predict(graphs)
    alone = [lpgnn.load(trained, unit=unit).predict(graphs) for unit in model.units]
    mean = torch.stack([present(p.probabilities) for p in alone]).mean(dim=0)
    assert torch.equal(present(together.probabilities), mean)
    assert torch.allclose(mean.sum(dim=1), torch.ones(3))
    assert torch.equal(present(together.classes), mean.argmax(dim=1))
    nodes = sum(graph.num_nodes for graph in graphs)
    for unit, prediction in zip(model.units, alone, strict=True):
        (states,) = together.states[unit]
        assert states.shape == (nodes, 32)
        assert torch.equal(states, prediction.states[unit][0])
        assert states.abs().max() > 0
        assert together.inference[unit]["steps"] > 0
    assert together.graph_ptr.tolist() == [0, 5, 11, 18]


def test_the_way_graphs_are_given_does_not_matter(
    trained: lpgnn.Run, make_graphs: MakeGraphs, pyg: Any
) -> None:
    graphs = make_graphs(count=4)
    model = lpgnn.load(trained.folder)
    expected = present(model.predict(graphs).probabilities)
    given = (
        lpgnn.from_pyg(graphs),
        pyg.data.Batch.from_data_list(graphs),
        tuple(graphs),
        iter(graphs),
    )
    for other in given:
        assert torch.equal(present(model.predict(other).probabilities), expected)
    alone = present(model.predict(graphs[2]).probabilities)
    assert torch.allclose(alone, expected[2:3], atol=1e-5)
    checkpoint = trained.folder / "units" / "fold-00" / "last.pt"
    single = lpgnn.load(checkpoint).predict(graphs)
    fold = lpgnn.load(trained, unit="fold-00").predict(graphs)
    assert torch.equal(present(single.probabilities), present(fold.probabilities))


def test_nodes_with_classes(small: dict[str, Any], make_graphs: MakeGraphs) -> None:
    run = lpgnn.train(dataset=make_graphs(level="node"), **small)
    graphs = make_graphs(count=3, level=None)
    prediction = lpgnn.load(run).predict(graphs)
    assert present(prediction.probabilities).shape == (sum(g.num_nodes for g in graphs), 2)


def test_a_network_of_a_named_dataset(small: dict[str, Any], runs: Path) -> None:
    run = lpgnn.train(dataset="mutag", **small)
    mutag = load_dataset(compose("train", ["dataset=mutag"]).dataset, None, 0).batch
    some = mutag.subset(torch.arange(20))
    lpgnn.save_graphs(some, "some.npz")
    found = evaluated(run, ["dataset=graphs", "dataset.path=some.npz"], runs)
    prediction = lpgnn.load(run, unit="fold-01").predict(some)
    expected = [int(row["predicted"]) for row in found["fold-01"]]
    assert present(prediction.classes).tolist() == expected


def test_sentences(trained: lpgnn.Run, make_graphs: MakeGraphs) -> None:
    model = lpgnn.load(trained)
    wide, bare = make_graphs(count=1), make_graphs(count=1)
    wide[0].x = torch.zeros(wide[0].num_nodes, 3)
    bare[0].edge_attr = None
    for call, sentence in (
        (lambda: model.predict(wide), "have 3 node features, and the network was trained with 2"),
        (lambda: model.predict(bare), "have 0 arc features, and the network was trained with 1"),
        (lambda: model.predict([]), "at least one graph"),
        (lambda: lpgnn.load(trained, unit="fold-09"), "has no unit fold-09"),
        (
            lambda: lpgnn.load(trained, checkpoint="first"),
            "one of selected, last, best_on_test",
        ),
        (lambda: lpgnn.load("nowhere"), "there is no such run folder"),
    ):
        with pytest.raises(lpgnn.UserError, match=sentence):
            call()


def test_asking_changes_nothing_of_torch(trained: lpgnn.Run, make_graphs: MakeGraphs) -> None:
    model = lpgnn.load(trained)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    model.predict(make_graphs(count=2))
    assert torch.equal(torch.rand(2), expected)
