"""Sweeps under `protocol=nested` in the report."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.runfolder import FINISHED, RunFolder, RunRecord

# What says where and how, and not what.
ELSEWHERE = ["data.root=/somewhere/else", "quiet=true", "threads=1", "hydra.launcher.workers=1"]
CONFIG = (
    "dataset: {name: MUTAG}\nprotocol: {name: nested}\npropagation: {name: %s, states: free}\n"
    "aggregator: {name: gin}\n"
)


def write_sweep(
    runs: Path, name: str, figures: list[float], *, folds_of: str = "same", **record: object
) -> None:
    folder = runs / "sweep" / name
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG % name, encoding="utf-8")
    kept = ["" if name == "layers" else f"{figure + 0.1:g}" for figure in figures]
    header = "fold,job,lr.theta,inner_validation_accuracy,test_accuracy,by_seed,persistent_accuracy"
    rows = [
        f"{fold},1,0.01,0.9,{figure:g},{figure:g} {figure:g} {figure:g},{kept[fold]}"
        for fold, figure in enumerate(figures)
    ]
    (folder / "nested.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    run = RunFolder(folder)
    run.write_summary({"jobs": 6 + len(figures), "seconds": 12.5})
    about = RunRecord(
        id=name,
        command="sweep",
        name=name,
        argv=["sweep", "protocol=nested", f"propagation={name}", *ELSEWHERE],
        version="0",
        started=time.time(),
        state=FINISHED,
        dataset_fingerprint="data",
        split_fingerprint=folds_of,
        git_commit="abc",
        versions={"torch": "2"},
    )
    for key, value in record.items():
        setattr(about, key, value)
    run.write_record(about)


def report(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["report", *words]) == 0
    return capsys.readouterr().out


def test_each_sweep_has_a_row_and_those_on_the_same_folds_are_tested(
    capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    write_sweep(runs, "lagrangian", [0.8, 0.9, 0.85, 0.85])
    write_sweep(runs, "layers", [0.75, 0.85, 0.8, 0.8])
    write_sweep(runs, "elsewhere", [0.5, 0.5, 0.5, 0.5], folds_of="others")
    write_sweep(runs, "unfinished", [0.1, 0.1, 0.1, 0.1], state="interrupted")
    text = report(capsys, "table=nested", "--runs", "--format", "markdown")
    assert "| MUTAG | lagrangian | lagrangian/gin | 85.0 ± 3.5 % | 95.0 ± 3.5 % | -10.0 |" in text
    assert (
        "| MUTAG | layers | layers/gin | 80.0 ± 3.5 % | - | - | 90.0 ± 0.0 % | 6 | 4 x 3 |" in text
    )
    assert "| lagrangian minus layers | MUTAG | 4 | +5.0 | 0.125 |" in text
    assert "elsewhere minus" not in text
    assert "unfinished" not in text
    rows = list(
        csv.DictReader(io.StringIO(report(capsys, "table=nested", "--runs", "--format", "csv")))
    )
    assert [row["sweep"] for row in rows] == ["elsewhere", "lagrangian", "layers"]
    assert float(rows[1]["mean"]) == pytest.approx(0.85)
    assert rows[1]["command"] == "lpgnn sweep protocol=nested propagation=lagrangian"


def test_sweeps_are_collected_with_the_runs(
    capsys: pytest.CaptureFixture[str], runs: Path, tmp_path: Path
) -> None:
    write_sweep(runs, "lagrangian", [0.8, 0.9])
    expected = report(capsys, "table=nested", "--runs", "--format", "csv")
    assert report(capsys, "collect") == "Collected lagrangian into results.\n"
    (line,) = (tmp_path / "results" / "nested.jsonl").read_text().splitlines()
    kept = json.loads(line)
    assert kept["figures"] == [0.8, 0.9]
    assert kept["seconds"] == 12.5
    assert (kept["version"], kept["git_commit"], kept["versions"]) == ("0", "abc", {"torch": "2"})
    assert report(capsys, "table=nested", "--results", "results", "--format", "csv") == expected
    assert "Selected without the test parts" in (tmp_path / "results" / "README.md").read_text()
    assert report(capsys, "collect") == "Nothing new.\n"
    (tmp_path / "results" / "nested.jsonl").write_text("{}\n")
    assert main(["report", "table=nested", "--results", "results"]) == 2
    assert "is not a list of collected sweeps" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_store_gives_the_same_rows(
    capsys: pytest.CaptureFixture[str], runs: Path, tmp_path: Path
) -> None:
    write_sweep(runs, "lagrangian", [0.8, 0.9])
    expected = report(capsys, "table=nested", "--runs", "--format", "csv")
    uri = f"sqlite:///{tmp_path / 'store.db'}"
    assert main(["sync", str(runs / "sweep" / "lagrangian"), "--uri", uri]) == 0
    capsys.readouterr()
    assert report(capsys, "table=nested", "--store", uri, "--format", "csv") == expected
