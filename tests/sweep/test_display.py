"""What a sweep says while it runs."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from lpgnn_cli.runfolder import FINISHED, RUNNING
from lpgnn_cli.sweeps.board import Board
from lpgnn_cli.sweeps.display import Monitor
from lpgnn_cli.sweeps.jobs import Job


def test_the_eta_counts_what_this_start_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    board = Board("auto")
    board.add([Job(number, f"{number}" * 20, ()) for number in range(8)])
    monitor = Monitor(board, [], Console(file=io.StringIO()))
    views = list(board.views.values())
    for view in views[:3]:
        view.state, view.found = FINISHED, True
    assert "ETA" not in monitor._count(), "what was there before tells nothing"
    views[3].state, views[4].state = FINISHED, RUNNING
    monitor.started = time.monotonic() - 60
    assert monitor._left() == pytest.approx(60 * 4, abs=1), "four jobs left, a minute each"
    assert "ETA 4:00" in monitor._count()
    for view in views:
        view.state = FINISHED
    assert "ETA" not in monitor._count()
