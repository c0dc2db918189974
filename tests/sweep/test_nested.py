"""`lpgnn sweep protocol=nested`: inner parts select, outer folds assess."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean

import pytest

import lpgnn_cli as lpgnn
from lpgnn_cli.cli import main
from lpgnn_cli.metrics import ACCURACY
from lpgnn_cli.runfolder import FINISHED, Rule, RunFolder, RunRecord, Unit, UnitResult
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.sweeps.board import Board
from lpgnn_cli.sweeps.jobs import Job, read_table
from lpgnn_cli.sweeps.nested import choose, summary_of

WORDS = (
    "protocol=nested",
    "protocol.folds=2",
    "protocol.retrain=2",
    "dataset=mutag",
    "propagation=layers",
    "epochs=3",
    "tracking=none",
    "device=cpu",
    "lr.theta=1e-4,1e-1",
)


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def folder_of(runs: Path) -> Path:
    (found,) = runs.glob("sweep/*/nested.csv")
    return found.parent


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "nested.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_job(run: RunFolder, inner: dict[int, list[float]], **optimistic: float) -> RunFolder:
    """The folder of a job whose units have these accuracies, by outer fold."""
    units = [
        Unit(f"fold-{fold:02d}-inner-{k}", fold, 0)
        for fold, values in inner.items()
        for k in range(len(values))
    ]
    record = RunRecord("id", "train", "job", [], "0", time.time(), state=FINISHED, units=units)
    for unit, value in zip(units, [v for values in inner.values() for v in values], strict=True):
        run.unit(unit.name).mkdir(parents=True)
        logged = {"test/accuracy": optimistic.get("logged", value)}
        result = UnitResult(unit.name, FINISHED, 3, 3, Rule.VALIDATION_LOSS, logged, 1.0)
        result.from_zero = {"accuracy": value}
        run.write_result(result)
    run.write_record(record)
    return run


def board_of(*jobs: Job) -> Board:
    board = Board("auto")
    board.outer_folds = 2
    board.add(list(jobs))
    for view in board.views.values():
        view.state = FINISHED
    return board


def test_each_outer_fold_chooses_by_its_own_inner_parts(runs: Path) -> None:
    first, second = Job(0, "a" * 20, ()), Job(1, "b" * 20, ())
    write_job(first.run, {0: [0.9, 0.7], 1: [0.5, 0.5]})
    write_job(second.run, {0: [0.8, 0.6], 1: [0.6, 0.8]})
    board = board_of(first, second)
    folds = choose(board)
    assert [(f.fold, f.chosen.job.number) for f in folds] == [(0, 0), (1, 1)]
    assert [f.inner for f in folds] == pytest.approx([0.8, 0.7])
    assert summary_of(folds, ACCURACY) == {}, "no choice was trained again yet"
    board.views[second.key].state = "interrupted"
    assert choose(board) == [], "no choice before all have been tried"


def test_a_cheat_that_shines_on_other_figures_is_not_chosen(runs: Path) -> None:
    """All that curves, persistent states or test parts can promise counts for nothing."""
    honest, cheat = Job(0, "a" * 20, ()), Job(1, "b" * 20, ())
    write_job(honest.run, {0: [0.7], 1: [0.7]})
    write_job(cheat.run, {0: [0.5], 1: [0.5]}, logged=1.0)
    board = board_of(honest, cheat)
    for view in board.views.values():
        view.summary = RunSummary.read(view.job.run)
    assert {f.chosen.job.number for f in choose(board)} == {0}


def test_equals_go_to_the_first_and_failures_are_left_out(runs: Path) -> None:
    jobs = [Job(k, letter * 20, ()) for k, letter in enumerate("abc")]
    write_job(jobs[0].run, {0: [0.7], 1: [float("nan")]})
    write_job(jobs[1].run, {0: [0.7], 1: [0.6]})
    write_job(jobs[2].run, {0: [0.9], 1: [0.9]})
    board = board_of(*jobs)
    board.views[jobs[2].key].state = "failed"
    assert [f.chosen.job.number for f in choose(board)] == [0, 1]


def test_a_sweep_selects_assesses_and_reports(
    runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *WORDS, "sweep.dry_run=true"]) == 0
    assert "Then the choices of 2 outer folds are trained again" in capfd.readouterr().out
    assert main(["sweep", *WORDS]) == 0
    said = capfd.readouterr().out
    folder = folder_of(runs)
    rows = rows_of(folder)
    assert [row["fold"] for row in rows] == ["0", "1"]
    accuracies = [float(row["test_accuracy"]) for row in rows]
    assert all(len(row["by_seed"].split()) == 2 for row in rows)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["jobs"] == summary["jobs_finished"] == 4
    assert summary["nested/accuracy_mean"] == pytest.approx(fmean(accuracies))
    assert "honest/accuracy_mean" not in summary, "what was chosen by is no result"
    assert "inner validation ▾" in said
    assert f"{100 * fmean(accuracies):.1f} ± " in said.split("nested   ")[1]
    written = (folder / "leaderboard.md").read_text()
    assert f"**Nested: {100 * fmean(accuracies):.1f} ± " in written
    assert written.count("| fold | job |") == 1
    capfd.readouterr()
    assert main(["runs"]) == 0
    listed = capfd.readouterr().out
    assert listed.count(" inner validation ") == 2, "no accuracy: it is what was chosen by"
    assert listed.count(" nested ") == 1
    assert f"{100 * fmean(accuracies):.1f} ± " in listed
    # The job that assesses is an ordinary run of one outer fold with its seeds.
    (again,) = (job for job in read_table(folder) if job.fold == 1)
    units = [unit.name for unit in again.run.read_record().units]
    assert units == ["fold-01-seed-0", "fold-01-seed-1"]
    # The same command computes nothing anew and says the same.
    before = {path: path.stat().st_mtime_ns for path in runs.glob("sweep/jobs/*/run.json")}
    assert main(["sweep", *WORDS]) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert rows_of(folder) == rows
    # `lpgnn status` leaves what it finds as the sweep has written it.
    capfd.readouterr()
    assert main(["status", folder.name]) == 0
    assert "inner validation ▾" in capfd.readouterr().out
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert (folder / "leaderboard.md").read_text() == written
    board = lpgnn.Sweep(folder)
    assert board.accuracy == pytest.approx(fmean(accuracies))
    assert [choice.fold for choice in board.choices] == [0, 1]
    assert len(board) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("protocol.stage=assess",), "protocol.stage is set by the sweep itself"),
        (("protocol.fold=1",), "protocol.fold is set by the sweep itself"),
        (("protocol=nested,kfold",), "give it alone"),
        (("dataset=mutag,ptc",), "each value of dataset has outer folds of its own"),
        (("seed=0,1",), "give seed one value"),
        (("protocol.folds=2,3",), "give protocol.folds one value"),
    ],
)
def test_what_the_sweep_decides_itself_is_refused(
    words: tuple[str, ...], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [word for word in WORDS if not word.startswith("protocol")]
    first = [] if words[0].startswith("protocol=") else ["protocol=nested"]
    assert main(["sweep", *given, *first, *words]) == 2
    assert sentence in capfd.readouterr().err


def plant(folder: Path) -> None:
    """Pairs of nodes whose label tells the class in 9 of 10 graphs, and whose attribute tells it in
    the graphs of the test parts alone."""
    chance = random.Random(0)
    classes = [graph % 2 for graph in range(120)]
    tests = [range(40), range(40, 80)]
    labels = [c if chance.random() < 0.9 else 1 - c for c in classes]
    leaks = [c if graph < 80 else chance.randint(0, 1) for graph, c in enumerate(classes)]
    columns = {
        "A": [f"{2 * g + 1}, {2 * g + 2}\n{2 * g + 2}, {2 * g + 1}" for g in range(120)],
        "graph_indicator": [f"{g + 1}\n{g + 1}" for g in range(120)],
        "graph_labels": list(map(str, classes)),
        "node_labels": [f"{label}\n{label}" for label in labels],
        "node_attributes": [f"{leak}\n{leak}" for leak in leaks],
    }
    (folder / "PLANTED").mkdir()
    for name, values in columns.items():
        text = "".join(f"{value}\n" for value in values)
        (folder / "PLANTED" / f"PLANTED_{name}.txt").write_text(text)
    # What selects is never among the graphs that leak.
    selecting = list(range(80, 120))
    splits = [
        {
            "test": list(test),
            "model_selection": [
                {"train": [g for g in range(80) if g not in test], "validation": selecting}
            ],
        }
        for test in tests
    ]
    (folder / "splits.json").write_text(json.dumps(splits))


def test_a_planted_cheat_wins_on_the_test_parts_and_is_not_chosen(
    runs: Path, tmp_path: Path
) -> None:
    plant(tmp_path)
    words = (
        "dataset=tu",
        "dataset.name=PLANTED",
        f"dataset.path={tmp_path / 'PLANTED'}",
        "protocol=nested",
        f"protocol.splits={tmp_path / 'splits.json'}",
        "protocol.retrain=1",
        "propagation=layers",
        "lr.theta=0.05",
        "epochs=60",
        "tracking=none",
        "device=cpu",
    )
    sweep = lpgnn.sweep(*words, "dataset.features=attributes,labels")
    assert [choice.settings for choice in sweep.choices] == [{"dataset.features": "labels"}] * 2
    cheat = lpgnn.train(*words, "dataset.features=attributes")
    assert cheat.accuracy > sweep.accuracy + 0.02, "the cheat would have won"


@pytest.mark.slow
def test_a_nested_sweep_that_is_killed_twice_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    words = [*WORDS, "protocol.folds=4", "epochs=15", "layers=1,2"]

    def start(root: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "lpgnn_cli", "sweep", *words]
        environment = {**os.environ, "LPGNN_RUNS": str(tmp_path / root)}
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    def finished(root: str) -> int:
        records = (tmp_path / root).glob("sweep/jobs/*/run.json")
        return sum(json.loads(path.read_text())["state"] == FINISHED for path in records)

    assert start("whole").wait() == 0
    for enough in (2, 5):
        process = start("killed")
        while finished("killed") < enough and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start("killed").wait() == 0
    whole, killed = (folder_of(tmp_path / root) for root in ("whole", "killed"))
    assert rows_of(killed) == rows_of(whole)
