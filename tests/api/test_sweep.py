"""`lpgnn.sweep` is `lpgnn sweep`, and returns its leaderboard."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lpgnn_cli as lpgnn
from lpgnn_cli.cli import main

KARATE = {"dataset": "karate", "epochs": 2, "hydra/launcher": "basic", "layers": 2}


def settings(sober: dict[str, Any]) -> dict[str, Any]:
    return {**KARATE, **sober, "state": [4, 2], "readout": {"hidden": []}}


def test_axes_rows_and_the_best(sober: dict[str, Any], runs: Path) -> None:
    board = lpgnn.sweep(seed=[0, 1], **settings(sober))
    assert {row.settings["seed"] for row in board} == {0, 1}
    values = [row.value for row in board]
    assert values == sorted(values, reverse=True)
    assert board.best is not None
    assert board.best is board.rows[0]
    run = board.best.run
    assert (run.state, run.accuracy) == ("finished", board.best.accuracy)
    assert run.config["state"] == [4, 2]
    assert run.config["seed"] == board.best.settings["seed"]
    assert board.table()[0]["folder"] == run.folder
    assert "2 of 2 jobs finished" in repr(board)
    assert board._repr_html_().count("<tr>") == 3
    assert lpgnn.Sweep(board.folder).rows == board.rows

    def jobs() -> dict[Path, int]:
        return {p: p.stat().st_mtime_ns for p in runs.glob("sweep/jobs/*/units/*/*")}

    before = jobs()
    words = [
        *("dataset=karate", "epochs=2", "hydra/launcher=basic", "layers=2", "tracking=none"),
        *("figures=false", "quiet=true", "threads=1", "device=cpu", "state=[4,2]"),
        *("readout.hidden=[]", "seed=0,1"),
    ]
    assert main(["sweep", *words]) == 0
    assert jobs() == before, "the command line finds the same jobs done"


def test_graphs_in_memory_are_swept_over(
    small: dict[str, Any], make_graphs: Callable[..., list[Any]]
) -> None:
    small["hydra/launcher"] = "basic"
    board = lpgnn.sweep(dataset=make_graphs(), aggregator=["sum", "gin"], **small)
    assert {row.settings["aggregator"] for row in board} == {"sum", "gin"}
    assert all(row.state == "finished" for row in board)


def test_jobs_that_fail_raise_at_the_end_and_the_others_are_kept(sober: dict[str, Any]) -> None:
    with pytest.raises(lpgnn.RunFailed, match="1 of 2 jobs failed") as raised:
        lpgnn.sweep("recipe=none", **settings(sober) | {"lr.theta": [0.01, 1e30], "lr.state": 1e3})
    assert raised.value.folder is not None
    board = lpgnn.Sweep(raised.value.folder)
    assert [row.state for row in board] == ["finished", "diverged"]
    assert board.best is not None
    assert board.best.settings == {"lr.theta": 0.01}
    assert "not finite" in board.rows[1].reason


def test_mistakes_are_told_before_any_work(runs: Path) -> None:
    with pytest.raises(lpgnn.UserError, match="g has no option abss"):
        lpgnn.sweep(dataset="karate", g=["abs", "abss"])
    with pytest.raises(lpgnn.UserError, match="epochs must be at least 1, not 0"):
        lpgnn.sweep(dataset="karate", epochs=[1, 0])
    assert not runs.exists()


def test_a_sweep_over_state_sizes_keeps_them_apart_from_the_state_of_a_job() -> None:
    words = ("dataset=karate", "epochs=2", "layers=1", "tracking=none", "hydra/launcher=basic")
    sweep = lpgnn.sweep(*words, state=[[3], [4]])
    table = sweep.table()
    assert sorted(str(row["state"]) for row in table) == ["[3]", "[4]"]
    assert {row["status"] for row in table} == {"finished"}
    with (sweep.folder / "leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["state"] for row in rows) == ["[3]", "[4]"]
    assert {row["status"] for row in rows} == {"finished"}
