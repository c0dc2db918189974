"""`lpgnn runs` over real run folders and a real store."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.runfolder import DIVERGED
from lpgnn_cli.tracking.mirror import Mirror
from lpgnn_cli.tracking.store import default_uri

from .conftest import MakeTrainer
from .fake_trainer import FakeTrainer


@pytest.fixture
def three_runs(make_trainer: MakeTrainer) -> list[FakeTrainer]:
    """A finished MUTAG run, a diverged IMDB-BINARY run, and one that was killed."""
    trainers = []
    for number, name in enumerate(("good", "bad", "killed")):
        trainer = make_trainer(name=name, units=2, epochs=5 * (number + 1))
        trainer.record.started += number
        trainers.append(trainer)
    good, bad, killed = trainers
    good.train()
    good.finish()
    bad.train()
    bad.record.argv = ["train", "dataset=imdb_b"]
    config = bad.run.config_path.read_text()
    bad.run.config_path.write_text(config.replace("MUTAG", "IMDB-BINARY").replace("0.01", "0.1"))
    bad.finish()
    bad.record.state = DIVERGED
    bad.run.write_record(bad.record)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    killed.record.pid = gone.pid
    killed.run.write_record(killed.record)
    return trainers


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["runs", *words, "--json"]) == 0
    return [run["name"] for run in json.loads(capsys.readouterr().out)]


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["killed", "bad", "good"]),
        (["dataset=mutag"], ["killed", "good"]),
        (["dataset=imdb_b"], ["bad"]),
        (["dataset=IMDB-BINARY"], ["bad"]),
        (["dataset!=mutag"], ["bad"]),
        (["lr.theta=1e-2"], ["killed", "good"]),
        (["state=[16]", "g=squared", "state=finished"], ["good"]),
        (["state=interrupted"], ["killed"]),
        (["cv/accuracy_mean>0.6"], ["bad"]),
        (["cv/accuracy_mean<=0.6"], ["good"]),
        (["--sort", "cv/accuracy_mean"], ["bad", "good", "killed"]),
        (["--sort", "cv/accuracy_mean", "--reverse"], ["good", "bad", "killed"]),
        (["--sort", "test/violation_mean"], ["bad", "good", "killed"]),
        (["--sort", "lr.theta", "--limit", "2"], ["good", "killed"]),
        (["--sort", "name"], ["bad", "good", "killed"]),
        (["--limit", "1"], ["killed"]),
    ],
)
def test_filters_and_order(
    capsys: pytest.CaptureFixture[str], words: list[str], names: list[str]
) -> None:
    assert listed(capsys, *words) == names


def test_states_and_values_in_the_table(
    three_runs: list[FakeTrainer], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["started", "dataset", "model"]
    killed, bad, good = lines
    assert "interrupted, not synced" in killed
    assert "diverged, not synced" in bad
    assert "finished, not synced" in good
    summary = three_runs[0].run.read_summary()
    mean, std = 100 * summary["cv/accuracy_mean"], 100 * summary["cv/accuracy_std"]
    assert f"{mean:.1f} ± {std:.1f}" in good
    assert str(three_runs[0].run.path) in good
    assert "lagrangian/sum/squared/1" in good


def test_figures_that_are_no_shares_keep_their_digits(
    three_runs: list[FakeTrainer], capsys: pytest.CaptureFixture[str]
) -> None:
    path = three_runs[0].run.summary_path
    summary = {k.replace("accuracy", "mae"): v for k, v in json.loads(path.read_text()).items()}
    path.write_text(json.dumps({**summary, "cv/mae_mean": 0.8364, "cv/mae_std": 0.0521}))
    assert main(["runs"]) == 0
    assert "0.836 ± 0.0521 mean absolute error" in capsys.readouterr().out


@pytest.mark.usefixtures("three_runs")
def test_a_column_for_what_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "lr.theta=0.1", "--sort", "cv/best_epoch"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert "lr.theta" in header
    assert "cv/best_epoch" in header
    assert " 0.1 " in line
    assert " 10 " in line


@pytest.mark.usefixtures("three_runs")
def test_csv_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["name"] for row in rows] == ["killed", "bad", "good"]
    assert rows[1]["lr.theta"] == "0.1"
    assert rows[0]["cv/accuracy_mean"] == ""
    assert float(rows[2]["cv/accuracy_mean"]) > 0


@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cv/acuracy_mean>0.8"], "Did you mean cv/accuracy_mean"),
        (["--sort", "lr.teta"], "Did you mean lr.theta"),
        (["datset=mutag"], "Did you mean dataset"),
        (["cv/accuracy_mean>high"], "not a number"),
        (["mutag"], "no filter"),
        (["--limit", "-3"], "--limit must be 1 or more, not -3"),
    ],
)
def test_wrong_words_are_answered_in_a_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main(["runs", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_no_runs_and_unreadable_runs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == 0
    assert "No runs" in capsys.readouterr().out
    broken = runs / "train" / "broken"
    broken.mkdir(parents=True)
    (broken / "run.json").write_text("{")
    assert main(["runs"]) == 0
    assert "cannot be read" in capsys.readouterr().err


def test_the_store_tells_the_same(
    three_runs: list[FakeTrainer], capsys: pytest.CaptureFixture[str], runs: Path, empty_store: Path
) -> None:
    assert main(["runs", "--store"]) == 2
    assert "nothing to show yet" in capsys.readouterr().err
    shutil.copy(empty_store, runs / "mlflow.db")
    good, bad, _ = three_runs
    for trainer in (good, bad):
        Mirror(trainer.run, default_uri(), "lpgnn").send(ended=True)
    assert listed(capsys, "--store", "--sort", "cv/accuracy_mean") == ["bad", "good"]
    assert listed(capsys, "dataset=imdb_b", "--store") == ["bad"]
    assert main(["runs", "state=finished", "dataset=mutag"]) == 0
    assert "not synced" not in capsys.readouterr().out


def test_only_settings_that_differ(
    three_runs: list[FakeTrainer], capsys: pytest.CaptureFixture[str]
) -> None:
    config = three_runs[1].run.config_path
    config.write_text(config.read_text().replace("state: [16]", "state: [8]"))
    assert main(["runs", "--diff"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    titles = header.split()
    assert "model" not in titles
    assert titles[-6:] == ["dataset", "lr.theta", "state", "sizes", "state", "folder"]
    (bad,) = [line for line in lines if "IMDB-BINARY" in line]
    assert bad.split()[-7:-4] == ["IMDB-BINARY", "0.1", "[8]"]
    assert main(["runs", "--diff", "dataset=mutag", "--json"]) == 0
    assert [run["params"] for run in json.loads(capsys.readouterr().out)] == [{}, {}]
