from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from lpgnn_cli.cli import main
from lpgnn_cli.paper.reference import presets_by_name, reach_tables
from lpgnn_cli.runfolder import RunFolder

MakeRun = Callable[..., RunFolder]


def test_all_of_reach_has_presets() -> None:
    cells = [c for t in reach_tables().values() for r in t.rows for c in r.cells.values()]
    assert cells
    assert all(preset in presets_by_name().values() for cell in cells for preset in cell.presets)


def test_what_was_measured_and_what_was_not(
    make_run: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run("reach_chains_10", [1.0, 0.98], seeds=2)
    make_run("reach_chains_10_control", [0.5, 0.5], seeds=2)
    assert main(["report", "reach", "--runs", "--format", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| LP-GNN, K = 1 | ours | 99.0 ± 1.0 | not run |" in " ".join(lines)
    assert any(line.startswith("| LP-GNN, K = 1 minus states frozen | 10 | 2 |") for line in lines)
    assert any("1:00 | 1 x 2 |" in line for line in lines)


def test_collecting_draws_it(make_run: MakeRun, tmp_path: Path) -> None:
    make_run("reach_chains_10", [1.0, 0.98], seeds=2)
    make_run("reach_cora", [0.8, 0.9], seeds=2)
    assert main(["report", "collect"]) == 0
    text = (tmp_path / "results" / "reach.md").read_text(encoding="utf-8")
    assert "figures/reach.png" in text
    assert "85.0 ± 5.0" in text
    with Image.open(tmp_path / "results" / "figures" / "reach.png") as picture:
        assert picture.width > picture.height


def test_reach_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "reach", "table=karate"]) == 2
    assert "a report of its own" in capsys.readouterr().err
