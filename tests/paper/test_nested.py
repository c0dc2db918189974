"""Sweeps under `protocol=nested` in the report."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.paper.nested_section import INDENT
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


def write_fair(
    runs: Path,
    model: str,
    figures: list[float],
    *words: str,
    select: str = "auto",
    started: float = 1.0,
) -> None:
    """A sweep of the fair table on MUTAG, with more words in its command."""
    name = f"{model}-{len(list(runs.glob('sweep/*')))}"
    argv = ["sweep", f"experiment=fair/{model}", "dataset=mutag", *words, *ELSEWHERE]
    write_sweep(runs, name, figures, argv=argv, started=started)
    config = runs / "sweep" / name / "config.yaml"
    about = "name: null" if any("variant" in word for word in words) else f"name: fair_{model}"
    text = config.read_text("utf-8").replace("name: nested", f"name: nested, select: {select}")
    config.write_text(f"{about}\n{text}", encoding="utf-8")


TEN = [0.8, 0.9] * 5


def test_the_fair_table_has_a_cell_for_each_model_and_dataset(
    capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    write_fair(runs, "lp_single", TEN)
    write_fair(runs, "lp_single", [0.75, 0.85] * 5, "variant=control")
    write_fair(runs, "lp_multi", [0.7, 0.9, 0.8], "aggregator=sum", "protocol.folds=3")
    write_fair(runs, "gin", [0.7, 0.8] * 5, select="loss")
    write_sweep(runs, "own", TEN)
    text = report(capsys, "table=nested", "--runs", "--format", "markdown")
    assert "| model | MUTAG | PTC | ENZYMES |" in text
    assert "| LP-GNN, K = 1 | 85.0 ± 5.0 | not run |" in text
    assert f"| {INDENT}states frozen | 80.0 ± 5.0 |" in text
    assert "| LP-GNN, K = 3 | 80.0 ± 8.2ᵃ |" in text
    assert "ᵃ aggregator=sum; 3 outer folds, 3 seeds." in text
    assert "| GIN | 75.0 ± 5.0° |" in text
    # What the sweep is called, and how to repeat it with today's defaults.
    assert "fair\\_lp\\_single\\_control" in text
    assert "experiment=fair/gin dataset=mutag protocol.select=loss" in text
    differences = text[text.index("Paired comparisons") :]
    assert "| LP-GNN, K = 1 minus GIN° | MUTAG | 10 | +10.0 | 0.002 |" in differences
    assert "| LP-GNN, K = 1 minus states frozen | MUTAG | 10 | +5.0 |" in differences
    # Rivals are not compared with each other, nor a control with a rival; one's own sweeps are.
    assert "GIN° minus" not in differences
    assert "states frozen minus" not in differences
    assert "| fair\\_gin minus own | MUTAG | 10 | -10.0 |" in differences


def test_gin_has_a_row_of_its_own_where_its_last_epoch_counts(
    capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    write_fair(runs, "lp_single", TEN)
    write_fair(runs, "gin", [0.7, 0.8] * 5)
    write_fair(runs, "gin", [0.72, 0.82] * 5, "protocol.select=last", select="last", started=2.0)
    text = report(capsys, "table=nested", "--runs", "--format", "markdown")
    assert "| GIN | 75.0 ± 5.0 | not run |" in text
    assert f"| {INDENT}last epoch | 77.0 ± 5.0 | not run |" in text
    differences = text[text.index("Paired comparisons") :]
    assert "| LP-GNN, K = 1 minus GIN | MUTAG | 10 | +10.0 |" in differences
    assert "| LP-GNN, K = 1 minus GIN, last epoch | MUTAG | 10 | +8.0 |" in differences


def test_what_the_loss_selected_gives_way_in_the_table_and_stays_in_the_file(
    capsys: pytest.CaptureFixture[str], runs: Path, tmp_path: Path
) -> None:
    words = ("table=nested", "--results", "results", "--format", "markdown")
    write_fair(runs, "gin", [0.6, 0.8] * 5, started=1.0)
    write_fair(runs, "gin", [0.5, 0.7] * 5, select="loss", started=2.0)
    report(capsys, "collect")
    assert len((tmp_path / "results" / "nested.jsonl").read_text().splitlines()) == 2
    assert "| GIN | 70.0 ± 10.0 |" in report(capsys, *words)
    # A newer one under the same choice takes the place of the older.
    write_fair(runs, "gin", TEN, started=3.0)
    assert report(capsys, "collect") == "Collected fair_gin into results.\n"
    assert len((tmp_path / "results" / "nested.jsonl").read_text().splitlines()) == 2
    assert "| GIN | 85.0 ± 5.0 |" in report(capsys, *words)


def test_the_fair_table_in_every_format(capsys: pytest.CaptureFixture[str], runs: Path) -> None:
    write_fair(runs, "lp_single", TEN)
    write_fair(runs, "gin", [0.7, 0.8] * 5, select="loss")
    words = ("table=nested", "--runs", "--format")
    assert "GIN & 75.0 $\\pm$ 5.0$^\\circ$ &" in report(capsys, *words, "latex")
    assert "75.0 ± 5.0°" in report(capsys, *words, "html")
    rows = list(csv.DictReader(io.StringIO(report(capsys, *words, "csv"))))
    assert [(row["select"], row["seconds"]) for row in rows] == [("loss", "12.5"), ("auto", "12.5")]
    tests = report(capsys, "table=comparisons", "--runs", "--format", "csv")
    assert "nested,fair_lp_single,fair_gin,MUTAG,nested,10,10.000," in tests


def test_on_a_narrow_terminal_deviations_have_a_line_of_their_own(
    capsys: pytest.CaptureFixture[str], runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fair(runs, "lp_single", TEN)
    monkeypatch.setenv("COLUMNS", "120")
    assert "85.0 ± 5.0" in report(capsys, "table=nested", "--runs")
    monkeypatch.setenv("COLUMNS", "60")
    table = report(capsys, "table=nested", "--runs").split("Measured cells")[0]
    first = next(line for line in table.splitlines() if "LP-GNN, K = 1" in line)
    assert "85.0" in first
    assert "±" not in first
    assert "± 5.0" in table


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
