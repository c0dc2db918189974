"""`lpgnn eval`: what was recorded is found again, and unseen graphs are scored as known ones."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import compose
from lpgnn_cli.data import Dataset, load_dataset
from lpgnn_cli.runfolder import RunFolder

SOBER = ("tracking=none", "threads=1", "device=cpu")
SMALL = ("epochs=4", "quiet=true", "figures=false", "protocol.workers=1", "inference.steps=20")
MUTAG = ("dataset=mutag", "protocol.folds=2")
CASES = {
    "gradient": MUTAG,
    "one_shot, two layers": (*MUTAG, "propagation.updates=one_shot", "layers=2"),
    "frozen": (*MUTAG, "propagation.states=frozen"),
    "fixed_point": (*MUTAG, "propagation=fixed_point"),
    "layers": (*MUTAG, "propagation=layers", "aggregator=gin", "layers=2", "readout.norm=batch"),
    "validation": ("dataset=clique", "dataset.graphs=10", "aggregator.dropout=0.5"),
    "all supervised": ("dataset=karate",),
}


def train(runs: Path, *overrides: str) -> RunFolder:
    assert main(["train", *SOBER, *SMALL, *overrides]) == 0
    return RunFolder(max(runs.glob("train/*/*"), key=lambda path: path.stat().st_ctime_ns))


def evaluate(runs: Path, *overrides: str) -> RunFolder:
    before = set(runs.glob("eval/*/*"))
    assert main(["eval", *SOBER, *overrides]) == 0
    (folder,) = set(runs.glob("eval/*/*")) - before
    return RunFolder(folder)


def predictions(run: RunFolder, unit: str) -> list[dict[str, str]]:
    with (run.unit(unit) / "predictions.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("case", CASES)
def test_what_was_recorded_is_found_again(runs: Path, case: str) -> None:
    trained = train(runs, *CASES[case])
    again = evaluate(runs, f"run={trained.path}")
    for unit in trained.read_record().units:
        recorded, found = trained.read_result(unit.name), again.read_result(unit.name)
        assert recorded is not None
        assert found is not None
        assert found.from_zero == recorded.from_zero
        assert found.persistent == recorded.persistent
        # In training the reach is measured for a figure, and here always.
        reach = {"reach": found.inference.get("reach")} if "reach" in found.inference else {}
        assert found.inference == {**recorded.inference, **reach}
        assert predictions(again, unit.name) == predictions(trained, unit.name)
        if case != "all supervised":  # its training figures are of the pass before the step
            there = recorded.persistent or recorded.from_zero
            logged = recorded.metrics.items()
            assert there == {k.removeprefix("test/"): v for k, v in logged if "test/" in k}


@pytest.mark.parametrize("case", ["layers", "validation"])
def test_items_are_counted_in_the_dataset(runs: Path, case: str) -> None:
    """Not in the part: a row is found again in the data, and in what `lpgnn predict` writes."""
    trained = train(runs, *CASES[case])
    config = compose("train", [*SOBER, *SMALL, *CASES[case]])
    targets = load_dataset(config.dataset, None, config.seed).batch.targets.tolist()
    for run in (trained, evaluate(runs, f"run={trained.path}")):
        items = []
        for unit in trained.read_record().units:
            rows = predictions(run, unit.name)
            items += [int(row["item"]) for row in rows]
            assert [targets[int(row["item"])] for row in rows] == [int(r["target"]) for r in rows]
        assert len(set(items)) == len(items)
        assert max(items) > len(items) // len(trained.read_record().units)


def test_the_table_of_runs_has_its_accuracy(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained = train(runs, *CASES["layers"])
    evaluate(runs, f"run={trained.path}")
    capsys.readouterr()
    assert main(["runs"]) == 0
    newest, first = (line.split() for line in capsys.readouterr().out.splitlines()[1:])
    assert newest[4:7] == first[4:7]  # mean, ±, std
    assert float(newest[4]) > 0


def test_the_checkpoint_alone_is_enough(runs: Path, tmp_path: Path) -> None:
    trained = train(runs, *MUTAG)
    recorded = trained.read_result("fold-01")
    assert recorded is not None
    alone = tmp_path / "alone.pt"
    shutil.move(trained.unit("fold-01") / "last.pt", alone)
    shutil.rmtree(trained.path)
    summary = evaluate(runs, f"run={alone}").read_summary()
    assert summary["eval/accuracy_mean"] == recorded.from_zero["accuracy"]
    assert summary["test/violation_mean"] == recorded.from_zero["violation_mean"]
    assert summary["persistent/accuracy_mean"] == recorded.metrics["test/accuracy"]


def mutag() -> Dataset:
    config = compose("train", ["dataset=mutag"])
    return load_dataset(config.dataset, None, 0)


def test_numbers_are_not_asked_of_a_network_for_classes(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rather than counted as one class."""
    arrays: dict[str, Any] = {
        "features": np.eye(4)[[0, 1, 2, 3] * 4],
        "source": np.arange(16),
        "target": np.arange(16),
        "graph_ptr": np.arange(0, 17, 4),
    }
    np.savez(tmp_path / "classes.npz", **arrays, targets=np.array([0, 1, 0, 1]))
    np.savez(tmp_path / "numbers.npz", **arrays, targets=np.array([0.5, 1, 0, 1]))
    trained = train(runs, "dataset=graphs", "dataset.path=classes.npz", "protocol.folds=2")
    words = ["dataset=graphs", "dataset.path=numbers.npz"]
    assert main(["eval", *SOBER, f"run={trained.path}", *words]) == 2
    said = "have numbers for targets, and the network was trained with classes."
    assert said in capsys.readouterr().err


def write_tu(folder: Path, dataset: Dataset, graphs: list[int], classes: list[int]) -> Path:
    """Some graphs of MUTAG as a TU folder; features are one-hot, so argmax is the label."""
    batch = dataset.batch.subset(torch.tensor(graphs))
    files = {
        "A": [
            f"{u + 1}, {v + 1}"
            for u, v in zip(batch.arcs.source.tolist(), batch.arcs.target.tolist(), strict=True)
        ],
        "graph_indicator": [str(g + 1) for g in batch.graph_of_node.tolist()],
        "graph_labels": [str(classes[t]) for t in batch.targets.tolist()],
        "node_labels": [str(label) for label in batch.features.argmax(1).tolist()],
        "edge_labels": [str(label) for label in batch.arc_in.argmax(1).tolist()],
    }
    folder.mkdir()
    for name, lines in files.items():
        (folder / f"UNSEEN_{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_unseen_graphs_are_scored_as_they_would_be_among_others(runs: Path, tmp_path: Path) -> None:
    """Few graphs have few of the labels: their columns must be those the network knows."""
    trained, dataset = train(runs, *MUTAG), mutag()
    some = [3, 50, 120]
    few = dataset.batch.subset(torch.tensor(some))
    assert int((few.features.sum(0) > 0).sum()) < few.features.shape[1], "a label is missing"
    path = write_tu(tmp_path / "UNSEEN", dataset, some, list(dataset.vocabulary.classes))
    unseen = ("dataset=tu", "dataset.name=UNSEEN", f"dataset.path={path}", "unit=fold-00")
    alone = predictions(evaluate(runs, f"run={trained.path}", *unseen), "fold-00")
    among = predictions(
        evaluate(runs, f"run={trained.path}", "dataset=mutag", "unit=fold-00"), "fold-00"
    )
    assert [row["target"] for row in alone] == [among[g]["target"] for g in some]
    assert [row["predicted"] for row in alone] == [among[g]["predicted"] for g in some]
    for mine, theirs in zip(alone, (among[g] for g in some), strict=True):
        assert float(mine["probability"]) == pytest.approx(float(theirs["probability"]), abs=1e-5)
        assert float(mine["violation"]) == pytest.approx(float(theirs["violation"]), abs=1e-5)


def test_what_does_not_fit_is_refused_in_one_sentence(
    runs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trained, dataset = train(runs, *MUTAG), mutag()
    path = write_tu(tmp_path / "UNSEEN", dataset, [3, 50], [17, 18])
    capfd.readouterr()
    refusals = {
        ("dataset=karate",): "karate does not fit",
        ("dataset=tu", "dataset.name=UNSEEN", f"dataset.path={path}"): "the class 1",
        ("unit=fold-99",): "has no unit fold-99; it has fold-00, fold-01",
        ("inference=anderson", "inference.memory=0"): "inference.memory must be at least 1",
    }
    for overrides, sentence in refusals.items():
        assert main(["eval", *SOBER, f"run={trained.path}", *overrides]) == 2
        said = capfd.readouterr().err
        assert sentence in said
        assert said.count("\n") == 1
    assert main(["eval", *SOBER, "run=nowhere"]) == 2
    assert "there is no such run folder" in capfd.readouterr().err
    rubbish = tmp_path / "rubbish.pt"
    rubbish.write_bytes(b"not a checkpoint")
    assert main(["eval", *SOBER, f"run={rubbish}"]) == 2
    assert "is not a checkpoint" in capfd.readouterr().err
    assert not list(runs.glob("eval/*/*")), "a refused evaluation leaves nothing behind"


def test_another_test_phase_may_be_chosen(runs: Path) -> None:
    trained = train(runs, *MUTAG)
    evaluated = evaluate(
        runs, f"run={trained.path}", "inference=anderson", "inference.steps=7", "unit=fold-00"
    )
    result = evaluated.read_result("fold-00")
    assert result is not None
    assert result.inference["steps"] <= 7
    assert "name: anderson" in evaluated.config_path.read_text()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:mlflow")
@pytest.mark.filterwarnings("ignore:The ``noload``:DeprecationWarning")
def test_an_mlflow_run_id_names_a_run(runs: Path) -> None:
    """The run folder where it is here, what the store has of it where it is not."""
    trained = train(runs, *MUTAG, "tracking=mlflow")
    ids = json.loads((trained.path / "tracking.json").read_text())
    parent, child = ids["parent"]["run_id"], ids["units"]["fold-01"]["run_id"]
    here = evaluate(runs, f"run={child}")
    assert [unit.name for unit in here.read_record().units] == ["fold-01"]
    recorded = trained.read_result("fold-01")
    found = here.read_result("fold-01")
    assert recorded is not None
    assert found is not None
    assert found.from_zero == recorded.from_zero

    recorded = trained.read_result("fold-00")
    assert recorded is not None
    shutil.rmtree(trained.path)
    fetched = evaluate(runs, f"run={parent}")
    assert [unit.name for unit in fetched.read_record().units] == ["fold-00", "fold-01"]
    found = fetched.read_result("fold-00")
    assert found is not None
    assert found.from_zero == recorded.from_zero


def test_no_checkpoint_stands_in_for_another(runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trained = train(runs, "dataset=clique", "dataset.graphs=10")
    unit = trained.unit("fold-00")
    assert {path.name for path in unit.glob("*.pt")} == {"last.pt", "selected.pt", "model.pt"}

    def refused(*words: str) -> str:
        capfd.readouterr()
        assert main(["eval", *SOBER, f"run={trained.path}", *words]) == 2
        return capfd.readouterr().err

    assert "only runs with keep_best_on_test=true have one" in refused("checkpoint=best_on_test")
    (unit / "selected.pt").rename(unit / "best.pt")
    assert "version 0.1 wrote best.pt instead, chosen on the validation part" in refused()
    evaluate(runs, f"run={unit / 'best.pt'}")
    evaluate(runs, f"run={trained.path}", "checkpoint=last")
