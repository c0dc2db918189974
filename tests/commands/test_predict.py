"""`lpgnn predict`: graphs and nodes without targets get the classes that eval gives them."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lpgnn_cli as lpgnn
from lpgnn_cli.cli import main
from lpgnn_cli.config.dataset import GraphsConfig
from lpgnn_cli.data import Vocabulary, walk
from lpgnn_cli.data import rows as tables
from lpgnn_cli.data.datasets.graphs import read_graphs
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.streaming import stream
from lpgnn_cli.training import ensemble
from lpgnn_cli.training.ensemble import pieces

from ..conftest import present

SOBER = ("threads=1", "device=cpu")
SMALL = (
    "tracking=none",
    "epochs=4",
    "quiet=true",
    "figures=false",
    "protocol.workers=1",
    "inference.steps=20",
)
GRAPHS = ("dataset=graphs", "protocol.folds=2")
Arrays = dict[str, Any]


def rings(count: int, seed: int = 0) -> Arrays:
    """Rings whose class is the majority of two kinds of nodes, as arrays of a graphs file."""
    random = np.random.RandomState(seed)
    sizes = random.randint(3, 9, size=count)
    graph_ptr = np.concatenate([[0], np.cumsum(sizes)])
    kind = random.randint(0, 2, size=graph_ptr[-1])
    starts, ends = [], []
    for first, size in zip(graph_ptr, sizes, strict=False):
        starts.append(first + np.arange(size))
        ends.append(first + (np.arange(size) + 1) % size)
    source, target = np.concatenate(starts), np.concatenate(ends)
    return {
        "features": np.eye(2, dtype=np.float32)[kind],
        "source": np.concatenate([source, target]),
        "target": np.concatenate([target, source]),
        "graph_ptr": graph_ptr,
        "targets": (np.add.reduceat(kind, graph_ptr[:-1]) * 2 > sizes).astype(np.int64),
    }


def in_order(arrays: Arrays) -> Arrays:
    """With the arcs of one graph after those of another, as most files have them."""
    order = np.argsort(arrays["target"], kind="stable")
    ends = {name: arrays[name][order] for name in ("source", "target")}
    return {**arrays, **ends}


def write_lines(path: Path, arrays: Arrays) -> None:
    """As JSON lines; every other graph as nodes and edges."""
    with path.open("w") as file:
        for number, (first, last) in enumerate(itertools.pairwise(arrays["graph_ptr"])):
            own = (arrays["target"] >= first) & (arrays["target"] < last)
            source, target = (arrays[end][own] - first for end in ("source", "target"))
            rows = arrays["features"][first:last].tolist()
            graph: dict[str, Any] = {"features": rows, "source": source.tolist()}
            graph["target"] = target.tolist()
            if number % 2:
                nodes = [{"id": f"n{k}", "features": row} for k, row in enumerate(rows)]
                ends = [(f"n{u}", f"n{v}") for u, v in zip(source, target, strict=True)]
                edges = [{"source": u, "target": v} for u, v in ends]
                graph = {"nodes": nodes, "links": edges, "directed": True}
            file.write(json.dumps(graph) + "\n")


def without(arrays: Arrays, name: str) -> Arrays:
    return {key: value for key, value in arrays.items() if key != name}


def train(runs: Path, *words: str) -> Path:
    assert main(["train", *SOBER, *SMALL, *words]) == 0
    return max(runs.glob("train/*/*"), key=lambda path: path.stat().st_ctime_ns)


def predict(*words: str) -> None:
    assert main(["predict", *SOBER, *words]) == 0


def read(path: str | Path) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def evaluated(runs: Path, *words: str) -> dict[str, list[dict[str, str]]]:
    before = set(runs.glob("eval/*/*"))
    assert main(["eval", *SOBER, "tracking=none", *words]) == 0
    (folder,) = set(runs.glob("eval/*/*")) - before
    return {path.parent.name: read(path) for path in sorted(folder.glob("units/*/predictions.csv"))}


def write_tu(folder: Path, arrays: Arrays) -> None:
    """As a TU folder; classes as 5 and 9, so that they are no indices."""
    sizes = np.diff(arrays["graph_ptr"])
    arcs = zip(arrays["source"] + 1, arrays["target"] + 1, strict=True)
    files = {
        "A": [f"{u}, {v}" for u, v in arcs],
        "graph_indicator": np.repeat(np.arange(len(sizes)) + 1, sizes),
        "node_labels": arrays["features"].argmax(axis=1),
    }
    if "targets" in arrays:
        files["graph_labels"] = np.array([5, 9])[arrays["targets"]]
    folder.mkdir()
    for name, lines in files.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{folder.name}_{name}.txt").write_text(text)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that all tests ask."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LPGNN_RUNS", str(folder / "runs"))
        np.savez(folder / "rings.npz", **rings(60))
        path = f"dataset.path={folder / 'rings.npz'}"
        return train(folder / "runs", *GRAPHS, path, "epochs=20")


def test_a_thousand_graphs_without_classes_get_those_of_eval(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tu(tmp_path / "RINGS", rings(60))
    run = train(runs, "dataset=tu", "dataset.name=RINGS", "dataset.path=RINGS", "epochs=20",
                "protocol.folds=2")  # fmt: skip
    write_tu(tmp_path / "KNOWN", rings(1000, seed=1))
    write_tu(tmp_path / "NEW", without(rings(1000, seed=1), "targets"))
    known = ("dataset=tu", "dataset.name=KNOWN", "dataset.path=KNOWN")
    new = ("dataset=tu", "dataset.name=NEW", "dataset.path=NEW", "batch_nodes=700")
    said = evaluated(runs, f"run={run}", *known)
    for unit, rows in said.items():
        predict(f"run={run}", *new, f"unit={unit}", "output=one.csv")
        alone = read("one.csv")
        assert len(alone) == 1000
        assert [row["item"] for row in alone] == [row["item"] for row in rows]
        assert [row["predicted"] for row in alone] == [row["predicted"] for row in rows]
        assert {row["predicted"] for row in rows} == {"0", "1"}
    capsys.readouterr()
    predict(f"run={run}", *new)
    out = capsys.readouterr().out
    assert "1,000 graphs, asked of 2 networks" in out
    assert "written to predictions.csv" in out
    together = read("predictions.csv")
    mean = np.mean([[float(row["probability_1"]) for row in rows] for rows in said.values()], 0)
    assert [float(row["probability_1"]) for row in together] == pytest.approx(mean, abs=1e-5)
    assert [row["class"] for row in together] == [str([5, 9][int(p > 0.5)]) for p in mean]


def test_a_file_that_is_read_graph_by_graph(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its format, and however little of it is read at a time, it gets the same classes as
    one that is read as a whole, since its arcs are not in order."""
    write_tu(tmp_path / "RINGS", rings(60))
    tu = ("dataset=tu", "dataset.name=RINGS", "dataset.path=RINGS", "protocol.folds=2")
    run = f"run={train(runs, *tu, 'epochs=20')}"
    graphs = without(rings(90, seed=1), "targets")
    # Labels 0 and 1 have the columns that the features of the arrays are.
    np.savez("whole.npz", **graphs)
    np.savez_compressed("small.npz", **in_order(graphs))
    write_lines(tmp_path / "lines.jsonl", in_order(graphs))
    write_tu(tmp_path / "NEW", in_order(graphs))
    shutil.make_archive("NEW", "zip", tmp_path, "NEW")
    files = {
        "small": ("dataset=graphs", "dataset.path=small.npz"),
        "lines": ("dataset=graphs", "dataset.path=lines.jsonl"),
        "folder": ("dataset=tu", "dataset.name=NEW", "dataset.path=NEW"),
        "zip": ("dataset=tu", "dataset.name=NEW", "dataset.path=NEW.zip"),
    }
    predict(run, "dataset=graphs", "dataset.path=whole.npz", "output=whole.csv")
    expected = read("whole.csv")
    assert len({row["predicted"] for row in expected}) == 2
    # From here on nothing can be read as a whole.
    monkeypatch.setattr(ensemble, "load_dataset", None)
    for piece, nodes in ((1, 1), (50, 30), (tables.PIECE_BYTES, 10_000)):
        monkeypatch.setattr(tables, "PIECE_BYTES", piece)
        for name, words in files.items():
            predict(run, *words, f"batch_nodes={nodes}", f"output={name}.csv")
            found = read(f"{name}.csv")
            for column in ("item", "predicted", "class"):
                assert [r[column] for r in found] == [r[column] for r in expected]
            one = [[float(row["probability_1"]) for row in table] for table in (found, expected)]
            assert one[0] == pytest.approx(one[1], abs=1e-6)


def test_ten_times_as_many_graphs_take_as_much_memory(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PIECE_BYTES", 1 << 14)
    monkeypatch.setattr(walk, "BLOCK", 1 << 10)
    peaks = []
    for count in (2_000, 20_000):
        np.savez("many.npz", **without(in_order(rings(count)), "targets"))
        known = Vocabulary(degrees=(2,), classes=(0, 1))
        tracemalloc.start()
        config = GraphsConfig("graphs", "auto", 0, False, "parents", path="many.npz")
        assert sum(d.batch.num_graphs for d in present(stream(config, known, 500))) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < Path("many.npz").stat().st_size / 5


def test_json_and_npz_say_what_csv_says(trained: Path) -> None:
    np.savez("new.npz", **without(rings(7, seed=2), "targets"))
    new = (f"run={trained}", "dataset=graphs", "dataset.path=new.npz", "states=true")
    predict(*new)
    predict(*new, "output=out/p.json", "batch_nodes=10")
    predict(*new, "output=p.npz", "batch_nodes=1")
    rows, objects = read("predictions.csv"), json.loads(Path("out/p.json").read_text())
    with np.load("p.npz") as found, np.load("predictions.states.npz") as beside:
        arrays, states = dict(found), dict(beside)
    assert [int(row["predicted"]) for row in rows] == [o["predicted"] for o in objects]
    assert arrays["predicted"].tolist() == [o["predicted"] for o in objects]
    assert arrays["item"].tolist() == list(range(7))
    table = np.array([o["probabilities"] for o in objects])
    assert arrays["probabilities"] == pytest.approx(table, abs=1e-6)
    assert [float(row["probability_0"]) for row in rows] == pytest.approx(table[:, 0], abs=1e-6)
    assert arrays["graph_ptr"].tolist() == rings(7, seed=2)["graph_ptr"].tolist()
    for unit in ("fold-00", "fold-01"):
        name = f"states/{unit}/layer-0"
        assert arrays[name].shape == (arrays["graph_ptr"][-1], 32)
        assert arrays[name] == pytest.approx(states[name], abs=1e-5)
    assert not list(Path.cwd().glob(".*npz*")), "nothing is left behind"


def test_the_screen_gets_the_rows_alone(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("new.npz", **without(rings(3, seed=2), "targets"))
    capsys.readouterr()
    predict(f"run={trained}", "dataset=graphs", "dataset.path=new.npz", "output=-")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("item,predicted,class,probability,violation,probability_0")


def test_nodes_without_labels(runs: Path) -> None:
    random = np.random.RandomState(0)
    village: Arrays = {
        "node_features": random.rand(40, 3).astype(np.float32),
        "node_labels": np.arange(40) % 2,
        "edges": random.randint(0, 40, size=(90, 2)),
    }
    np.savez("village.npz", **village)
    split = ("protocol.validation=0.2", "protocol.test=0.2")
    words = ("dataset=nodes", "dataset.path=village.npz", "dataset.normalise_rows=true")
    run = train(runs, *words, *split)
    np.savez("new.npz", **without(village, "node_labels"))
    # Rows are normalised as in training, though nobody says so.
    predict(f"run={run}", "dataset=nodes", "dataset.path=new.npz")
    (rows,) = evaluated(runs, f"run={run}", *words).values()
    found = read("predictions.csv")
    assert len(found) == 40
    assert [row["predicted"] for row in found] == [row["predicted"] for row in rows]
    assert [row["probability_0"] for row in found] == [row["probability_0"] for row in rows]


@pytest.mark.parametrize(
    ("targets", "columns"),
    [
        (np.eye(3, dtype=np.int64)[np.arange(60) % 3], ["predicted_0", "probability_2"]),
        (np.linspace(5, 9, 60), ["predicted_0"]),
    ],
)
def test_other_targets_than_classes(runs: Path, targets: Any, columns: list[str]) -> None:
    np.savez("rings.npz", **{**rings(60), "targets": targets})
    run = train(runs, *GRAPHS, "dataset.path=rings.npz")
    np.savez("new.npz", **without(rings(5, seed=2), "targets"))
    predict(f"run={run}", "dataset=graphs", "dataset.path=new.npz")
    rows = read("predictions.csv")
    assert set(columns) < set(rows[0])
    assert "class" not in rows[0]
    if targets.dtype.kind == "f":
        assert all(4 < float(row["predicted_0"]) < 10 for row in rows), "in the units of the data"


def test_graphs_are_encoded_as_in_training(runs: Path) -> None:
    """Degrees and eigenvectors are made here as there, by the command and from Python."""
    np.savez("rings.npz", **rings(60))
    words = ("dataset.features=degree", "dataset.positional=2", "dataset.neighbours=both")
    run = train(runs, *GRAPHS, "dataset.path=rings.npz", *words)
    np.savez("new.npz", **without(rings(5, seed=2), "targets"))
    predict(f"run={run}", "dataset=graphs", "dataset.path=new.npz")
    found = [int(row["predicted"]) for row in read("predictions.csv")]
    np.savez("known.npz", **rings(5, seed=2))
    (first, second) = evaluated(
        runs, f"run={run}", "dataset=graphs", "dataset.path=known.npz"
    ).values()
    mean = [
        (float(a["probability_1"]) + float(b["probability_1"])) / 2
        for a, b in zip(first, second, strict=True)
    ]
    assert found == [int(p > 0.5) for p in mean]


@pytest.mark.parametrize("left_out", [False, True])
def test_graphs_without_features(left_out: bool, runs: Path) -> None:
    """Rows of no columns take no bytes in a file, and there are as many as there are nodes."""
    bare = {**rings(40), "features": np.zeros((rings(40)["graph_ptr"][-1], 0), np.float32)}
    if left_out:
        bare = without(bare, "features")
    np.savez("bare.npz", **in_order(bare), arc_labels=np.zeros((len(bare["source"]), 0)))
    run = train(runs, *GRAPHS, "dataset.path=bare.npz")
    for nodes in (10, 100_000):
        words = f"batch_nodes={nodes}", f"output={nodes}.csv"
        predict(f"run={run}", "dataset=graphs", "dataset.path=bare.npz", *words)
    few, all_at_once = ([row["predicted"] for row in read(f"{n}.csv")] for n in (10, 100_000))
    assert few == all_at_once
    assert len(few) == 40


def test_what_cannot_be_done_is_said_in_one_sentence(
    trained: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    np.savez("rings.npz", **rings(3))
    np.savez("wide.npz", **{**rings(3), "features": np.zeros((rings(3)["graph_ptr"][-1], 5))})
    np.savez("torn.npz", **without(rings(3), "source"))
    Path("model").mkdir()
    Path("model/MLmodel").write_text("flavors: {}\n")
    os.mkfifo("pipe.csv")
    new = (f"run={trained}", "dataset=graphs", "dataset.path=rings.npz")
    good = json.dumps({"features": [[0, 1]], "source": [], "target": []})
    Path("empty.jsonl").write_text("")
    Path("torn.jsonl").write_text(f"{good}\n{good[:9]}")
    far = '{"features": [[0, 1]], "source": [0], "target": [7]}'
    Path("far.jsonl").write_text(f"{good}\n{far}\n")
    Path("deep.jsonl").write_text("[" * 100_000)
    Path("nan.jsonl").write_text(f"{good}\n{good.replace('1', 'NaN')}\n")
    no_arcs = np.zeros(0, int)
    nothing = {"features": np.zeros((0, 2)), "source": no_arcs, "target": no_arcs}
    changes: dict[str, dict[str, Any]] = {
        "nothing": {**nothing, "graph_ptr": np.zeros(1, int)},
        "vector": {"features": np.zeros(())},
        "complex": {"features": rings(3)["features"].astype(complex)},
        "text": {"features": rings(3)["features"].astype(str)},
    }
    for name, change in changes.items():
        np.savez(f"{name}.npz", **{**rings(3), **change})
    refusals = {
        (*new, "dataset.path=nan.jsonl"): "graph 1 cannot be read: features must be finite",
        (*new, "dataset.path=nothing.npz"): "there is no graph in it",
        (*new, "dataset.path=vector.npz"): "features must be a matrix, not of shape ()",
        (*new, "dataset.path=complex.npz"): "features must be numbers, not complex128",
        (*new, "dataset.path=text.npz"): "features must be numbers, not <U",
        (*new, "dataset.path=empty.jsonl"): "empty.jsonl has no graphs",
        (*new, "dataset.path=torn.jsonl"): "torn.jsonl, line 2 is not a graph in JSON",
        (*new, "dataset.path=far.jsonl"): "graph 1 has an edge to a node that it does not have",
        (*new, "dataset.path=deep.jsonl"): "deep.jsonl, line 1 is nested too deeply",
        (*new, "dataset.path=no.jsonl"): "there is no such file",
        (f"run={trained}",): "the graphs are missing: add dataset=graphs",
        (*new, "dataset.path=wide.npz"): "have 5 node features, and the network was trained with 2",
        (*new, "dataset.path=torn.npz"): "lacks the array source",
        (*new, "dataset.path=no.npz"): "there is no such file",
        (*new, "output=x.txt"): "end it in .csv, .json or .npz, or set format",
        (*new, "output=-", "format=npz"): "arrays cannot be printed",
        (*new, "output=pipe.csv"): "output=pipe.csv is a device or a pipe",
        (*new, "format=cvs"): "format must be one of csv, json, npz, not cvs. Did you mean csv?",
        (*new, "unit=fold-07"): "has no unit fold-07",
        ("run=model", *new[1:]): "it has no checkpoint",
        ("run=models:/nobody/1", *new[1:]): "there is nothing to show yet",
        (*new, "statse=true"): "there is no setting statse. Did you mean states",
    }
    for words, sentence in refusals.items():
        capfd.readouterr()
        assert main(["predict", *SOBER, *words]) == 2
        said = capfd.readouterr().err
        assert sentence in said
        assert said.count("\n") == 1
    assert not Path("predictions.csv").exists()


def test_the_folder_of_an_mlflow_model_is_its_checkpoints(trained: Path) -> None:
    np.savez("new.npz", **without(rings(4, seed=2), "targets"))
    new = ("dataset=graphs", "dataset.path=new.npz")
    for unit in ("fold-00", "fold-01"):
        folder = Path("model/data/units") / unit
        folder.mkdir(parents=True)
        shutil.copyfile(trained / "units" / unit / "last.pt", folder / "model.pt")
    Path("model/MLmodel").write_text("flavors: {}\n")
    for words in ((), ("unit=fold-01",)):
        predict("run=model", *new, *words)
        predict(f"run={trained}", *new, *words, "output=there.csv")
        assert read("predictions.csv") == read("there.csv")


@pytest.mark.filterwarnings("ignore::DeprecationWarning:mlflow")
@pytest.mark.filterwarnings("ignore:The ``noload``:DeprecationWarning")
def test_a_registered_model_in_a_new_process(runs: Path) -> None:
    np.savez("rings.npz", **rings(40))
    words = ("dataset.path=rings.npz", "tracking=mlflow", "tracking.register=necklaces@best")
    run = train(runs, *GRAPHS, *words)
    np.savez("new.npz", **without(rings(30, seed=2), "targets"))
    new = ("dataset=graphs", "dataset.path=new.npz")
    predict(f"run={run}", *new)
    shutil.rmtree(run)
    asked = (*SOBER, *new, "run=models:/necklaces@best", "output=model.csv")
    done = subprocess.run(
        [sys.executable, "-m", "lpgnn_cli", "predict", *asked],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert read("model.csv") == read("predictions.csv")


def test_pieces_are_all_graphs_once_and_never_too_many_nodes() -> None:
    np.savez("rings.npz", **rings(30))
    batch, _ = read_graphs(Path("rings.npz"))
    for nodes in (1, 8, 20, 10_000):
        parts = [part.batch for part in pieces(Part(batch), nodes)]
        assert sum(part.num_graphs for part in parts) == 30
        assert all(part.num_nodes <= nodes or part.num_graphs == 1 for part in parts)
        assert torch.equal(torch.cat([part.features for part in parts]), batch.features)
    assert len(list(pieces(Part(batch), 10_000))) == 1


def test_a_run_is_known_by_its_name(runs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    np.savez("rings.npz", **rings(20))
    new = ("dataset=graphs", "dataset.path=rings.npz")
    first = train(runs, *GRAPHS, "dataset.path=rings.npz", "name=mine")
    last = train(runs, *GRAPHS, "dataset.path=rings.npz", "name=mine", "seed=3")
    predict("run=mine", *new)
    predict(f"run={last}", *new, "output=last.csv")
    predict(f"run={first.name}", *new, "output=first.csv")
    assert read("predictions.csv") == read("last.csv") != read("first.csv")
    assert main(["predict", "run=mien", *new]) == 2
    assert "Did you mean mine?" in capfd.readouterr().err


def test_python_and_the_command_agree(trained: Path) -> None:
    np.savez("new.npz", **without(rings(6, seed=2), "targets"))
    predict(f"run={trained}", "dataset=graphs", "dataset.path=new.npz")
    batch, _ = read_graphs(Path("new.npz"), targets=False)
    found = lpgnn.load(trained).predict(batch)
    rows = read("predictions.csv")
    assert present(found.classes).tolist() == [int(row["predicted"]) for row in rows]
    assert found.violation.tolist() == [float(row["violation"]) for row in rows]
