"""`lpgnn diff`: what differs between runs, with the paired test that the report has."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.formatting import p_text, signed
from lpgnn_cli.runfolder import RunFolder

MakeRun = Callable[..., RunFolder]
FIRST = [0.9, 0.8, 0.85, 0.9, 0.95, 0.9, 0.8, 0.75, 0.9, 0.85]
SECOND = [0.85, 0.8, 0.8, 0.9, 0.85, 0.9, 0.7, 0.8, 0.85, 0.8]


@pytest.fixture
def two(make_run: MakeRun) -> tuple[str, str]:
    """Single and its control on the same folds."""
    one = make_run("mutag_single", FIRST, middle=SECOND)
    other = make_run("mutag_single_control", SECOND, middle=[a - 0.2 for a in SECOND])
    return str(one.path), str(other.path)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(["diff", *words]) == 0
    return capsys.readouterr().out


def row(text: str, *starts: str) -> list[str]:
    """The cells of the line that begins with these."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    (found,) = [cells for cells in lines if tuple(cells[: len(starts)]) == starts]
    return found[len(starts) :]


def test_figures_and_p_are_those_of_the_report(
    two: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, *two)
    assert row(text, "from zero (honest)") == ["86.0 ± 5.8 %", "82.5 ± 5.6 %"]
    assert main(["report", "table=comparisons", "--runs", "--format", "csv"]) == 0
    reported = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    figures = {"honest": "from zero (honest)", "best_epoch": "best epoch, from zero (optimistic)"}
    for test in reported:
        pairs, difference, p, p_corrected = row(text, "B minus A", figures[test["protocol"]])
        assert pairs == test["pairs"] == "10"
        assert difference == signed(-float(test["difference"]))
        assert p == p_text(float(test["p_sign_flips"]))
        assert p_corrected == p_text(float(test["p_corrected_t"]))
    assert {test["protocol"] for test in reported} == set(figures)


def test_settings_that_differ_and_no_others(
    make_run: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        make_run("mutag_single", FIRST),
        make_run("mutag_single", SECOND, lr__theta=0.5, device="cpu"),
        make_run("mutag_gin", SECOND, lr__theta=0.5),
    ]
    text = said(capsys, str(runs[0].path), str(runs[1].path))
    (first,) = [line for line in text.splitlines() if line.strip().startswith("setting")]
    settings = text[text.index(first) :].split("\n\n")[0].splitlines()[2:]
    assert [line.split()[0] for line in settings if line.strip()] == ["lr.theta", "Different"]
    assert "without effect on results: device." in text
    with_gin = said(capsys, *(str(run.path) for run in runs))
    assert row(with_gin, "propagation.name") == ["lagrangian", "lagrangian", "layers"]
    assert "Only C has aggregator.eps=" in with_gin
    alone = said(capsys, str(runs[1].path), str(runs[2].path))
    assert "Only A has" in alone
    assert "propagation.states=free" in " ".join(alone.split())


def test_code_data_and_folds(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = make_run("mutag_single", FIRST), make_run("mutag_multi", FIRST, folds_of="others")
    record = other.read_record()
    record.version, record.versions = "0.2.0", {"torch": "3.0"}
    other.write_record(record)
    text = said(capsys, str(one.path), str(other.path))
    assert row(text, "version") == ["0.1.0", "0.2.0"]
    assert row(text, "folds") == ["same", "others"]
    assert row(text, "torch") == ["2.0", "3.0"]
    assert "The same: state finished, data data." in text
    assert row(text, "B minus A")[0] == "trained on other folds: not paired"


def test_runs_have_names_and_three_may_be_compared(
    two: tuple[str, str], make_run: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    third = make_run("mutag_multi", [a + 0.01 for a in SECOND])
    text = said(capsys, *(Path(path).name for path in two), third.path.name)
    assert row(text, "C minus A", "from zero (honest)")[0] == "10"
    assert text.index("A  MUTAG") < text.index("B  MUTAG") < text.index("C  MUTAG")


def test_the_page_needs_nothing_beside_itself(
    two: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, *two, "--output", "out/diff.html")
    assert "Written to out/diff.html" in text
    page = Path("out/diff.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 1
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page)
    for words in ("What differs between A and B", "propagation.states", "B minus A", "Curves"):
        assert words in page
    said(capsys, *two, "--output", "curves.png")
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")


def test_one_sentence_for_what_cannot_be_compared(
    two: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    evaluation = RunFolder.create(tmp_path / "runs", "eval", "again")
    record = json.loads(Path(two[0], "run.json").read_text()) | {"command": "eval"}
    evaluation.record_path.write_text(json.dumps(record))
    name = Path(two[0]).name
    refusals: dict[tuple[str, ...], str] = {
        (two[0],): "diff compares 2 to 26 runs, not 1.",
        (two[0], f"{name}x"): f"Did you mean {name}",
        (two[0], str(tmp_path)): "is not a run folder",
        (two[0], str(evaluation.path)): "is of lpgnn eval: diff compares runs of lpgnn train.",
        (*two, "--output", "diff.doc"): "must end in .html (everything) or .png (the curves).",
    }
    for words, sentence in refusals.items():
        assert main(["diff", *words]) == 2
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1


def test_a_run_without_figures_yet(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = make_run("mutag_single", FIRST), make_run("mutag_single", SECOND)
    for name in ("summary.json", "folds.csv", "curves.csv"):
        (other.path / name).unlink()
    text = said(capsys, str(one.path), str(other.path))
    assert row(text, "from zero (honest)") == ["86.0 ± 5.8 %", "-"]
    assert row(text, "B minus A")[0] == "fewer than two pairs: no test"
