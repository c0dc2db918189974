"""Which job is the best depends on what is measured."""

from __future__ import annotations

import pytest

from lpgnn_cli.runfolder import FINISHED
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.jobs import Job
from lpgnn_cli.sweeps.leaderboard import effects, header_of
from lpgnn_cli.sweeps.objective import AUTO


def board_of(metric: str, values: dict[str, float]) -> Board:
    board = Board(metric)
    for number, (g, value) in enumerate(values.items()):
        job = Job(number, str(number), (), {"g": g.rstrip("12")})
        board.views[job.key] = View(job, FINISHED, summary=RunSummary.from_dict({metric: value}))
    return board


VALUES = {"abs1": 0.3, "abs2": 0.1, "lin1": float("nan"), "lin2": 0.2}


@pytest.mark.parametrize(
    ("metric", "order", "best_abs", "text"),
    [
        ("honest/accuracy_mean", [0, 3, 1, 2], 0.3, "30.0 %"),
        ("train/violation_mean", [1, 3, 0, 2], 0.1, "0.1"),
    ],
)
def test_the_best_comes_first_and_what_has_no_value_last(
    metric: str, order: list[int], best_abs: float, text: str
) -> None:
    board = board_of(metric, VALUES)
    assert [view.job.number for view in board.ranked()] == order
    best = board.best()
    assert best is not None
    assert board.text(board.value(best)) == text
    assert {e.value: e.best for e in effects(board, ["g"])}["abs"] == best_abs


def test_jobs_that_are_judged_by_another_metric_are_not_compared() -> None:
    """A mean absolute error of 2 is no accuracy of 200 %."""
    board = board_of("honest/accuracy_mean", {"abs": 0.3})
    board.metric = AUTO
    stored: dict[str, float | str] = {"honest/mae_mean": 2.0}
    other = View(Job(1, "1", (), {"g": "lin"}), FINISHED, summary=RunSummary.from_dict(stored))
    board.views["1"] = other
    assert [view.job.number for view in board.ranked()] == [0, 1]
    assert board.text(board.value(other)) == "-"


def test_a_metric_without_a_column_of_its_own_gets_one() -> None:
    assert header_of(board_of("seconds", VALUES), [])[2:4] == ["seconds ▾", "honest"]
    assert "honest ▾" in header_of(board_of("honest/accuracy_mean", VALUES), [])
