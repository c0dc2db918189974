"""Sweeps over the paper's grids in the report."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import pytest

from lpgnn_cli.cli import main

WORDS = ["experiment=grid/paper_clique", "epochs=1", "sweep.sample=3"]
MANNER = ["tracking=none", "hydra/launcher=basic"]


def report(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["report", *words]) == 0
    return capsys.readouterr().out


def test_a_sample_of_a_grid_is_reported_and_collected(
    capsys: pytest.CaptureFixture[str], runs: Path, tmp_path: Path
) -> None:
    assert main(["sweep", *WORDS, *MANNER]) == 0
    capsys.readouterr()
    text = report(capsys, "table=grids", "--runs", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(text))
    figures = [float(figure) for figure in row["figures"].split()]
    assert len(figures) == 3
    assert figures == sorted(figures, reverse=True)
    assert (row["combinations"], row["trained"], row["failed"]) == ("972", "3", "0")
    assert float(row["best"]) == pytest.approx(figures[0], abs=1e-5)
    assert float(row["median"]) == pytest.approx(figures[1], abs=1e-5)
    # The manner of running is nobody's concern who repeats it; which sample it was is.
    assert row["command"] == f"lpgnn sweep {' '.join(WORDS)}"
    assert "tracking" not in row["best_command"]
    assert main(["train", *shlex.split(row["best_command"])[2:], "tracking=none"]) == 0
    capsys.readouterr()

    assert report(capsys, "collect") == "Collected paper_clique into results.\n"
    (line,) = (tmp_path / "results" / "grids.jsonl").read_text().splitlines()
    assert json.loads(line)["versions"]["torch"]
    assert "over the paper's grids" in (tmp_path / "results" / "README.md").read_text()
    assert report(capsys, "table=grids", "--results", "results", "--format", "csv") == text
    assert report(capsys, "collect") == "Nothing new.\n"
    assert main(["report", "table=grids", "--store"]) == 2
    assert "table=grids is read from run folders" in capsys.readouterr().err


def test_the_best_of_a_grid_say_nothing_of_the_rest(
    capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    assert main(["sweep", *WORDS, *MANNER, "sweep.name=brief"]) == 0
    full = ["experiment=grid/paper_clique", "epochs=2", "sweep.best_of=brief", "sweep.sample=2"]
    assert main(["sweep", *full, *MANNER, "sweep.name=full"]) == 0
    capsys.readouterr()
    text = report(capsys, "table=grids", "--runs", "--format", "csv")
    rows = {row["trained"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["3"]["median"] != ""
    assert rows["2"]["median"] == ""
    assert rows["2"]["command"] == f"lpgnn sweep {' '.join([*full, 'sweep.name=full'])}"
    assert "2 of 972, chosen by another sweep" in report(capsys, "table=grids", "--runs")
    report(capsys, "collect")
    assert report(capsys, "table=grids", "--results", "results", "--format", "csv") == text


def test_a_sweep_that_goes_on_is_not_reported(
    capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    folder = runs / "sweep" / "unfinished"
    folder.mkdir(parents=True)
    (folder / "leaderboard.csv").write_text("rank,job,status,honest_accuracy\n,0,pending,\n")
    assert report(capsys, "table=grids", "--runs", "--format", "csv").count("\n") == 1
