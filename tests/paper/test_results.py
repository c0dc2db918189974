"""What `lpgnn report collect` keeps, and what of it is committed in `results/`."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import conf_dir
from lpgnn_cli.paper.grids import KEPT as GRIDS
from lpgnn_cli.paper.nested import KEPT as SWEEPS
from lpgnn_cli.paper.presets import departures, preset_settings
from lpgnn_cli.paper.reference import Preset, presets_by_name
from lpgnn_cli.paper.results import RUNS, read_notes, thin, write_results
from lpgnn_cli.paper.shared import SHARED, factored, whole
from lpgnn_cli.runfolder import RunFolder

MakeRun = Callable[..., RunFolder]

MUTAG = [0.9, 0.95, 0.85, 0.9, 0.95, 0.85, 0.9, 0.9, 0.9, 0.9]
COMMITTED = conf_dir().parent / "results"


def read_lines(results: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (results / RUNS).read_text("utf-8").splitlines()]
    return restored(lines)


def restored(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first, *runs = lines
    return [whole(run, first[SHARED]) for run in runs]


def report(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["report", *words]) == 0
    return capsys.readouterr().out


def cells(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, str]]:
    rows = csv.DictReader(io.StringIO(report(capsys, *words, "--format", "csv")))
    return {f"{r['table']}/{r['row']}/{r['column']}": r for r in rows}


def without(row: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.parametrize(
    "line", read_lines(COMMITTED), ids=lambda line: f"{line['preset']}-{line['variant']}"
)
def test_committed_settings_are_those_of_the_preset(line: dict[str, Any]) -> None:
    preset = Preset(line["preset"], line["variant"])
    assert preset.name in presets_by_name()
    assert departures(preset, line["settings"]) == []
    # Settings come and go, but most are there for good: what has nothing to compare is no match.
    assert len(line["settings"].keys() & preset_settings(preset).keys()) > 40
    assert line["command"].split()[:2] == ["lpgnn", "train"]
    assert set(preset.overrides) <= set(line["command"].split())


def test_the_committed_tables_say_what_the_committed_runs_hold(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    for name in (RUNS, SWEEPS, GRIDS, "notes.yaml"):
        shutil.copyfile(COMMITTED / name, results / name)
    shutil.copytree(COMMITTED / "figures", results / "figures")
    write_results(results)
    tables = (results / "README.md").read_text(encoding="utf-8")
    assert tables == (COMMITTED / "README.md").read_text(encoding="utf-8")
    for figure in re.findall(r"\]\((figures/[^)]+)\)", tables):
        Image.open(COMMITTED / figure).verify()


def test_the_committed_results_are_few_small_files_without_leftovers() -> None:
    files = [path for path in COMMITTED.rglob("*") if path.is_file()]
    assert len(files) <= 13
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert set(read_notes(COMMITTED)) <= set(presets_by_name())
    shown = "".join(page.read_text(encoding="utf-8") for page in COMMITTED.glob("*.md"))
    assert {path.name for path in (COMMITTED / "figures").iterdir()} == set(
        re.findall(r"\(figures/([^)]+)\)", shown)
    )


def test_settings_that_most_runs_share_are_said_once_and_none_is_lost() -> None:
    runs = [
        {"preset": "a", "settings": {"lr": "1", "K": "1", "old": "x"}},
        {"preset": "b", "settings": {"lr": "1", "K": "3"}},
        {"preset": "c", "settings": {"K": "1"}},
    ]
    first, *lines = factored(runs)
    assert first == {"shared_settings": {"lr": "1", "K": "1"}}
    assert [line["settings"] for line in lines] == [{"old": "x"}, {"K": "3"}, {"lr": None}]
    assert restored([first, *lines]) == runs
    assert [whole(run, {}) for run in runs] == runs, "a file of before"


def test_collect_keeps_what_the_report_needs_and_nothing_of_the_machine(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    make_run("mutag_single", MUTAG, data__root="/secret/place")
    make_run("mutag_single_control", [a - 0.05 for a in MUTAG])
    make_run("ptc_single", [0.6] * 10, epochs=3)
    before = cells(capsys, "--runs")
    tests_before = report(capsys, "table=comparisons", "--runs", "--format", "csv")
    assert "mutag_single, mutag_single_control" in report(capsys, "collect")
    results = tmp_path / "results"
    after = cells(capsys, "paper")
    for place, row in before.items():
        assert without(row, "run", "command") == without(after[place], "run", "command")
    assert report(capsys, "table=comparisons", "--format", "csv") == tests_before
    lines = read_lines(results)
    assert [(line["preset"], line["variant"]) for line in lines] == [
        ("mutag_single", "none"),
        ("mutag_single", "control"),
    ]
    assert lines[1]["command"] == "lpgnn train experiment=mutag_single variant=control"
    assert lines[0]["versions"] == {"torch": "2.0"}
    for path in results.rglob("*"):
        if path.is_file() and path.suffix != ".png":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"/secret|/somewhere|some-machine", text), path
            assert str(tmp_path) not in text, path
    assert "falls short by 0.5" in (results / "README.md").read_text(encoding="utf-8")
    assert report(capsys, "collect") == "Nothing new.\n"


def test_collect_replaces_older_results_and_keeps_the_others(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, runs: Path
) -> None:
    make_run("karate", [0.5])
    make_run("mutag_single", MUTAG)
    report(capsys, "collect")
    runs.rename(runs.with_name("gone"))
    make_run("karate", [1.0])
    assert report(capsys, "collect") == "Collected karate into results.\n"
    rows = cells(capsys)
    assert rows["karate/lp/karate"]["honest"] == "100"
    assert rows["graph_classification/single/mutag"]["state"] == "measured"


def test_units_that_were_lost_stay_lost(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun
) -> None:
    make_run("mutag_single", MUTAG, unit_states=["finished"] * 9 + ["diverged"])
    expected = cells(capsys, "--runs")["graph_classification/single/mutag"]
    report(capsys, "collect")
    kept = cells(capsys)["graph_classification/single/mutag"]
    assert kept["units_lost"] == "1"
    assert without(kept, "run", "command") == without(expected, "run", "command")


def test_the_states_of_the_karate_club_are_kept_as_one_picture(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    for name in ("karate", "karate_control"):
        run: RunFolder = make_run(name, [1.0])
        run.figures.mkdir()
        for file in ("embedding.png", "embedding.gif"):
            Image.new("RGB", (4, 4)).save(run.figures / file)
    report(capsys, "collect")
    kept = [path.name for path in (tmp_path / "results" / "figures").iterdir()]
    assert kept == ["karate.png"]
    assert "](figures/karate.png)" in (tmp_path / "results/README.md").read_text(encoding="utf-8")
    html = report(capsys, "table=karate", "--format", "html")
    assert html.count("data:image/png;base64,") == 1


def test_a_thinned_curve_is_short_and_ends_with_the_last_epoch() -> None:
    for epochs in (49, 50, 51, 99, 100, 1003):
        kept = thin(tuple((epoch, 1 / epoch) for epoch in range(1, epochs + 1)))
        assert (kept[0], kept[-1]) == ((1, 1.0), (epochs, float(f"{1 / epochs:.4g}")))
        assert len(kept) <= 50
        assert thin(tuple(kept)) == kept
    assert thin(((1, 0.5), (2, 0.25))) == [(1, 0.5), (2, 0.25)]
    assert thin(()) == []


def test_collecting_leaves_the_lines_of_other_runs_as_they_are(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    shutil.copyfile(COMMITTED / RUNS, results / RUNS)
    make_run("karate", [0.5])
    assert "karate" in report(capsys, "collect")
    before, after = read_lines(COMMITTED), read_lines(results)
    assert [line["preset"] for line in after if line not in before] == ["karate"]
    assert len(after) == len(before)


def test_notes_explain_a_row_that_falls_short(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    make_run("mutag_single", MUTAG)
    report(capsys, "collect")
    notes = {"mutag_single": "Larger states and\ndropout were tried."}
    (tmp_path / "results" / "notes.yaml").write_text(yaml.safe_dump(notes), encoding="utf-8")
    text = report(capsys, "table=graph_classification", "--format", "markdown")
    assert "falls short by 0.5. Larger states and dropout were tried." in text


def test_a_preset_that_changed_after_its_run_is_told(
    capsys: pytest.CaptureFixture[str], make_run: MakeRun, tmp_path: Path
) -> None:
    make_run("mutag_single", MUTAG)
    report(capsys, "collect")
    (line,) = read_lines(tmp_path / "results")
    line["settings"]["lr.theta"] = "0.5"
    (tmp_path / "results" / RUNS).write_text(json.dumps(line), encoding="utf-8")
    text = report(capsys, "table=graph_classification", "--format", "markdown")
    assert "lr.theta=0.5 instead of" in text
    assert cells(capsys)["graph_classification/single/mutag"]["state"] == "not run"


@pytest.mark.parametrize("text", ["{", "[]", '{"preset": "mutag_single"}'])
def test_a_broken_file_gets_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / RUNS).write_text(text, encoding="utf-8")
    assert main(["report", "paper"]) == 2
    assert "runs.jsonl, line 1 is not a collected run" in capsys.readouterr().err
