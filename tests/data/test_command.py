"""`lpgnn data` from the outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.commands.data import histogram
from lpgnn_cli.data.catalogue import CATALOGUE

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], no_data_folder: None) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main(["data", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_list(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "NCI1.zip").write_bytes(b"")
    (tmp_path / "cora.npz").write_bytes(b"")
    (tmp_path / "ENZYMES").mkdir()
    (tmp_path / "ENZYMES" / "ENZYMES_A.txt").write_text("")
    monkeypatch.setenv("LPGNN_DATA", str(tmp_path))
    code, out, _ = run()
    assert code == 0
    assert out == run("list")[1]
    rows = {line.split()[0]: line.split() for line in out.splitlines()}
    names = [*CATALOGUE, "tu", "graphs", "nodes"]
    assert list(rows)[1:-1] == names
    assert rows["nci1"][1:5] == ["4,110", "122,747", "265,506", "2"]
    assert [n for n in names if rows[n][-1] == "yes"] == ["nci1", "enzymes", "cora"]
    missing = ["ptc", "proteins", "imdb_b", "imdb_m", "citeseer", "minesweeper", "chameleon"]
    assert [n for n in names if rows[n][-1] == "no"] == missing
    assert str(tmp_path) in out


def test_describe(run: Run) -> None:
    code, out, _ = run("describe", "mutag")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for expected in (
        "nodes 3,371 (0 without arcs)",
        "targets 2 classes of graphs (63, 125)",
        "features 7 (0 continuous, 0 positional)",
        "arc labels 4",
        "nodes of a graph",
        "arcs into a node",
    ):
        assert expected in lines
    assert "4 1 █" in lines, "one atom has four bonds"


def test_describe_with_settings(run: Run, write_tu: Callable[..., Path]) -> None:
    path = write_tu(zipped=True)
    settings = ["dataset.name=TINY", f"dataset.path={path}", "dataset.positional=2"]
    code, out, _ = run("describe", "tu", *settings)
    assert code == 0
    assert "5 (0 continuous, 2 positional)" in out
    code, _, err = run("describe", "tu", "dataset.nmae=TINY")
    assert code == 2
    assert "dataset.name" in err


def test_describe_says_what_is_scored_and_split(run: Run) -> None:
    code, out, _ = run("describe", "ring", "dataset.graphs=10", "dataset.held_out=5")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "components 20" in lines
    assert "targets 5 classes of nodes (4, 4, 4, 4, 4)" in lines
    assert "splits 1 of the graphs (10/5/5)" in lines
    lines = [" ".join(line.split()) for line in run("describe", "chains")[1].splitlines()]
    assert "splits 1 of the nodes (200/400/3,400 in the first)" in lines


def test_prepare(run: Run) -> None:
    code, out, _ = run("prepare", "mutag", "karate")
    assert code == 0
    assert out.splitlines() == [
        "mutag: 188 graphs, 3,371 nodes, 7,442 arcs, 2 classes; ready.",
        "karate: 1 graphs, 34 nodes, 156 arcs, 4 classes; ready.",
    ]


def test_prepare_with_settings(run: Run, write_tu: Callable[..., Path], tmp_path: Path) -> None:
    write_tu()
    code, out, _ = run("prepare", "tu", "dataset.name=TINY", f"data.root={tmp_path}")
    assert (code, out) == (0, "tu: 4 graphs, 9 nodes, 5 arcs, 2 classes; ready.\n")


def test_a_name_may_be_written_as_a_setting(run: Run) -> None:
    assert run("describe", "dataset=karate") == run("describe", "karate")
    assert run("prepare", "dataset=karate")[0] == 0


def test_a_typo_is_found_before_any_work(run: Run) -> None:
    code, out, err = run("prepare", "mutag", "nci")
    assert (code, out) == (2, "")
    assert err == "lpgnn: there is no dataset nci. Did you mean nci1?\n"
    code, _, err = run("describe", "zzz")
    assert code == 2
    assert "Datasets: chains, chameleon, citeseer, clique," in err


def test_no_network_is_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPGNN_TU_URL", "http://127.0.0.1:9")
    code, out, err = run("prepare", "nci1")
    assert (code, out) == (2, "")
    assert err.startswith("lpgnn: NCI1 is not on disk and the network cannot be reached: put http")
    assert err.count("\n") == 1


def test_histogram_ranges() -> None:
    values = torch.tensor([0] * 100 + [1] * 50 + [29])
    rows = [line.split() for line in histogram(values)]
    assert [r[0] for r in rows[:2]] == ["0-2", "3-5"]
    assert rows[-1][0] == "27-29"
    assert sum(int(r[1]) for r in rows) == 151
    assert len(rows[0][2]) == 40
    assert len(rows[-1][2]) == 1
    assert [line.split()[:2] for line in histogram(torch.tensor([4, 4]))] == [["4", "2"]]
