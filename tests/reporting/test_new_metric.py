"""A new metric is one entry of the registry: everything that reports takes it up from there."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from lpgnn_cli.metrics import METRICS, Metric
from lpgnn_cli.reporting.figures import draw_curves
from lpgnn_cli.reporting.look import style
from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.reporting.train_table import closing_table
from lpgnn_cli.reporting.units import common_curves, read_units
from lpgnn_cli.runfolder import FINISHED, RunFolder
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.jobs import Job
from lpgnn_cli.sweeps.leaderboard import cells_of

from ..conftest import present
from .conftest import MakeRun


@pytest.fixture
def recall(monkeypatch: pytest.MonkeyPatch) -> Metric:
    metric = Metric(
        "recall",
        "recall",
        larger_is_better=True,
        in_per_cent=True,
        of_scores=lambda scores, targets: (scores.argmax(dim=1) == targets).double().mean(),
    )
    monkeypatch.setitem(METRICS, metric.name, metric)
    return metric


@pytest.fixture
def run(make_run: MakeRun, recall: Metric) -> RunFolder:
    return make_run(
        [
            {
                "train/accuracy": [0.8, 1.0],
                "train/recall": [0.5, 0.5],
                "test/accuracy": [0.9, 0.7],
                "test/recall": [0.1, 0.3],
            },
            {
                "train/accuracy": [0.8, 0.9],
                "train/recall": [0.5, 0.7],
                "test/accuracy": [0.8, 0.7],
                "test/recall": [0.3, 0.7],
            },
        ]
    )


def test_it_is_in_the_summary_under_both_rules(run: RunFolder) -> None:
    summarise(run)
    stored = json.loads(run.summary_path.read_text())
    assert stored["cv/best_epoch"] == 1
    assert stored["cv/recall_mean"] == pytest.approx(0.2)
    assert stored["cv/recall_std"] == pytest.approx(0.1)
    assert stored["honest/recall_mean"] == pytest.approx(0.5)
    assert stored["honest/recall_std"] == pytest.approx(0.2)
    assert stored["train/recall_mean"] == pytest.approx(0.6)


def test_it_has_a_line_in_the_closing_table(run: RunFolder) -> None:
    summarise(run)
    file = io.StringIO()
    closing_table(run, Console(file=file), 1.0)
    (line,) = (row for row in file.getvalue().splitlines() if row.startswith("recall"))
    assert line.split(maxsplit=1) == ["recall", "50.0 ± 20.0 %"]


def test_it_has_a_panel_in_the_curves(run: RunFolder) -> None:
    with style():
        curves = common_curves(read_units(run))
        figure = present(draw_curves(curves, summarise(run), "title"))
    _, recall = figure.axes
    assert recall.get_ylabel() == "recall (%)"
    texts = [text.get_text() for text in present(recall.get_legend()).get_texts()]
    assert texts == [
        "train",
        "test",
        "best epoch 1: 20.0 % (optimistic)",
        "last epoch, from zero: 50.0 % (honest)",
    ]


def test_a_sweep_can_be_sorted_by_it(run: RunFolder) -> None:
    board = Board("honest/recall_mean")
    board.views = {"a": View(Job(1, "a", ()), FINISHED, summary=summarise(run))}
    assert cells_of(board, board.views["a"], 1, [])[2] == "50.0 %"
