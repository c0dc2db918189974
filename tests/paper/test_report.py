from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from lpgnn_cli.cli import main
from lpgnn_cli.formatting import signed
from lpgnn_cli.paper.document import value_text
from lpgnn_cli.paper.reference import Value, reference_tables
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED, INTERRUPTED, RunFolder

MakeRun = Callable[..., RunFolder]

MUTAG = [0.9, 0.95, 0.85, 0.9, 0.95, 0.85, 0.9, 0.9, 0.9, 0.9]


def report(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["report", *words]) == 0
    return capsys.readouterr().out


def cells(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, str]]:
    rows = csv.DictReader(io.StringIO(report(capsys, *words, "--format", "csv")))
    return {f"{r['table']}/{r['row']}/{r['column']}": r for r in rows}


def test_the_reference_has_the_papers_values() -> None:
    tables = reference_tables()
    assert list(tables) == [
        "karate",
        "artificial",
        "graph_classification",
        "csl",
        "enzymes",
        "depth_vs_diffusion",
        "lp_in_other_gnns",
    ]
    paper = {
        (t.id, r.id, c): cell.paper
        for t in tables.values()
        for r in t.rows
        for c, cell in r.cells.items()
    }
    assert paper["artificial", "squared", "clique"] == Value(93.07, 2.18)
    assert paper["graph_classification", "multi", "mutag"] == Value(92.2, 5.6)
    assert paper["graph_classification", "dcnn", "nci1"] == Value(62.6, None)
    assert paper["csl", "lp", "test"] == Value(98.9, 4.49)
    assert paper["enzymes", "lp", "seed2_test"] == Value(64.17, 5.6)
    assert paper["depth_vs_diffusion", "gin", "k1"] == Value(52, None)
    assert paper["lp_in_other_gnns", "lp_gcn", "k5"] == Value(73.7, None)
    assert ("graph_classification", "awl", "ptc") not in paper
    assert sum(value is not None for value in paper.values()) == 16 + 51 + 16 + 32 + 8 + 12 + 1
    kinds = {r.model: r.kind for r in tables["graph_classification"].rows}
    control = kinds["Single, states frozen"]
    assert (kinds["GIN"], kinds["GNN*"], control) == ("quoted", "paper", "ours")


def test_nothing_has_been_run(capsys: pytest.CaptureFixture[str]) -> None:
    rows = cells(capsys, "paper", "--runs")
    assert {row["state"] for row in rows.values()} == {"not run", "quoted only"}
    assert rows["graph_classification/dcnn/mutag"]["state"] == "quoted only"
    assert rows["graph_classification/gin/mutag"]["paper_quoted"] == "true"
    text = report(capsys, "table=karate", "--runs")
    assert "not run" in text
    assert "Measured cells" not in text


def test_a_table_may_stand_behind_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    text = report(capsys, "--runs", "table=karate")
    assert "table=karate" in text
    assert "table=csl" not in text


def test_a_run_stands_beside_the_paper(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("mutag_single", [a - 0.1 for a in MUTAG], middle=MUTAG)
    row = cells(capsys, "table=graph_classification", "--runs")["graph_classification/single/mutag"]
    # The second epoch is the best one on average, the third the last.
    assert (row["best_epoch"], row["honest"]) == ("90", "80")
    assert (row["paper"], row["difference"], row["compared"]) == ("90.5", "-0.5", "best_epoch")
    assert (row["folds"], row["seeds"], row["seconds"]) == ("10", "1", "600")
    text = report(capsys, "table=graph_classification", "--runs")
    assert "90.0 ± 3.2" in text
    assert "(90.5 ± 7.0, -0.5)" in text
    assert "-0.5 falls short" in text
    assert "LP-GNN-Single on MUTAG falls short by 0.5." in text
    assert "10:00" in text


def test_the_honest_value_is_compared_where_the_paper_has_a_validation_part(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("clique_squared", [0.95] * 5, middle=[0.99] * 5, seeds=5)
    row = cells(capsys, "--runs")["artificial/squared/clique"]
    assert (row["best_epoch"], row["honest"], row["difference"]) == ("99", "95", "1.93")
    assert (row["folds"], row["seeds"]) == ("1", "5")


def test_the_report_says_which_states_a_figure_is_of(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("mutag_single", [a - 0.1 for a in MUTAG], persistent=MUTAG)
    row = cells(capsys, "table=graph_classification", "--runs")["graph_classification/single/mutag"]
    assert (row["honest"], row["persistent"]) == ("80", "90")
    assert row["from_zero_minus_persistent"] == "-10"
    # The best epoch was not scored from zero: it is that of persistent states, and says so.
    assert (row["best_epoch"], row["states"]) == ("80", "persistent")
    assert row["per_fold_maximum"] == "80"
    text = report(capsys, "table=graph_classification", "--runs")
    assert "80.0 ± 3.2 persistent" in text
    assert "-10.0 !" in text


def test_columns_of_one_seed_and_of_the_training_part(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("enzymes_lp", [0.6] * 10 + [0.7] * 10, seeds=2)
    rows = cells(capsys, "--runs")
    assert rows["enzymes/lp/seed1_test"]["honest"] == "60"
    assert rows["enzymes/lp/seed2_test"]["honest"] == "70"
    train = rows["enzymes/lp/seed1_train"]
    assert (train["honest"], train["best_epoch"]) == ("100", "")


def test_a_modified_run_is_not_that_row(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("mutag_single", MUTAG, epochs=3)
    rows = cells(capsys, "--runs")
    assert rows["graph_classification/single/mutag"]["state"] == "not run"
    text = report(capsys, "table=graph_classification", "--runs")
    assert "is mutag_single modified, not counted: epochs=3 instead of" in " ".join(text.split())


def test_presentation_does_not_matter(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("mutag_single", MUTAG, quiet=True, threads=7, protocol__workers="2", figures=False)
    rows = cells(capsys, "--runs")
    assert rows["graph_classification/single/mutag"]["state"] == "measured"


def test_one_run_serves_all_cells_of_the_same_experiment(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("imdb_b_k1_lp", [0.7] * 10)
    rows = cells(capsys, "--runs")
    for place in (
        "graph_classification/single/imdb_b",
        "depth_vs_diffusion/lp/k1",
        "lp_in_other_gnns/lp/k1",
    ):
        assert rows[place]["best_epoch"] == "70"


def test_only_finished_runs_count_and_the_newest_of_them(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("mutag_single", [0.8] * 10)
    make_run("mutag_single", [0.9] * 10)
    make_run("mutag_single", [1.0] * 10, state=INTERRUPTED)
    make_run("mutag_multi", [0.4] * 10, state=FAILED, unit_states=[DIVERGED] * 10)
    rows = cells(capsys, "--runs")
    assert rows["graph_classification/single/mutag"]["honest"] == "90"
    assert rows["graph_classification/multi/mutag"]["state"] == "not run"
    text = report(capsys, "table=graph_classification", "--runs")
    assert "(mutag_single) is interrupted: not counted" in " ".join(text.split())


def test_lost_units_are_told(capsys: pytest.CaptureFixture[str], make_run: MakeRun) -> None:
    make_run("mutag_single", MUTAG, unit_states=[FINISHED] * 9 + [DIVERGED])
    text = report(capsys, "table=graph_classification", "--runs")
    assert "* mutag_single: 1 of 10 units did not finish." in text
    assert "9 x 1 *" in text


def test_unreadable_folders_are_passed_over(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, runs: Path
) -> None:
    run = make_run("karate", [1.0])
    (run.path / "folds.csv").write_text("unit,fold\nfold-00,x\n", encoding="utf-8")
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{", encoding="utf-8")
    assert cells(capsys, "--runs")["karate/lp/karate"]["state"] == "not run"


def test_every_format(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    make_run("mutag_single", MUTAG)
    make_run("mutag_single_control", [a - 0.05 for a in MUTAG])
    for preset in ("imdb_b_k1_lp", "imdb_b_k2_lp", "imdb_b_k1_gin"):
        make_run(preset, [0.7] * 10)
    karate = make_run("karate", [1.0])
    karate.figures.mkdir()
    for name in ("embedding.png", "embedding.gif"):
        Image.new("P", (4, 4)).save(karate.figures / name)

    text = report(capsys, "paper", "--runs", "--format", "markdown")
    assert "| LP-GNN-Single | paper |" in text
    assert "LP-GNN-Single minus Single, states frozen" in text
    assert "| GNN\\* |" in text

    tex = report(capsys, "--runs", "--format", "latex")
    assert tex.count("\\begin{tabular}") == tex.count("\\bottomrule") == tex.count("\\toprule") > 7
    assert "90.0 $\\pm$ 3.2 (90.5 $\\pm$ 7.0, $-$0.5)" in tex
    body = [line for line in tex.splitlines() if line.endswith("\\\\")]
    assert not [line for line in body if re.search(r"(?<!\\)[%_#]", line)]

    page = tmp_path / "deep" / "report.html"
    assert report(capsys, "--runs", "--output", str(page)) == ""
    html = page.read_text(encoding="utf-8")
    images = re.findall(r'src="data:image/(\w+);base64,([^"]+)"', html)
    assert [kind for kind, _ in images].count("gif") == 1
    for _, data in images:
        Image.open(io.BytesIO(base64.b64decode(data))).verify()
    # Karate twice, violation curves, and accuracy by depth in both of its tables.
    assert len(images) == 5
    assert not re.search(r'(src|href)="(?!data:|#)', html)

    tests = report(capsys, "table=comparisons", "--runs", "--format", "csv")
    assert "graph_classification,single,single_control,mutag,honest,10,5," in tests


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_store_gives_the_same_values(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run("mutag_single", MUTAG)
    expected = cells(capsys, "--runs")["graph_classification/single/mutag"]
    uri = f"sqlite:///{tmp_path / 'store.db'}"
    assert main(["sync", str(run.path), "--uri", uri]) == 0
    capsys.readouterr()
    row = cells(capsys, "--store", uri)["graph_classification/single/mutag"]
    assert row["run"].startswith("MLflow run ")
    assert {k: v for k, v in row.items() if k != "run"} == {
        k: v for k, v in expected.items() if k != "run"
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["table=csk"], "there is no table csk. Did you mean csl?"),
        (["everything"], "everything is not known here"),
        (["--results", "nowhere"], "nowhere holds no collected results"),
        (["--runs", "nowhere"], "nowhere is not a folder"),
        (["collect"], "has no finished run of a preset"),
        (["collect", "--store"], "collect takes only"),
        (["--store", "sqlite:///none.db"], "none.db comes with the first run"),
    ],
)
def test_mistakes_get_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main(["report", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_values_are_written_as_the_paper_writes_them() -> None:
    assert value_text(Value(96.25, 0.96)) == "96.25 ± 0.96"
    assert value_text(Value(100, None)) == "100.0"
    assert [signed(x) for x in (0.5, -0.5, 0.04, -0.04, None)] == [
        "+0.5",
        "-0.5",
        "0.0",
        "0.0",
        "-",
    ]
