from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from lpgnn_cli.reporting.progress import (
    LiveProgress,
    PlainProgress,
    QuietProgress,
    make_progress,
)
from lpgnn_cli.runfolder import DIVERGED, FINISHED, Rule, RunFolder, Unit, UnitResult

from .conftest import MakeRun

METRICS = {
    "train/loss": 0.4123,
    "train/accuracy": 0.9,
    "test/accuracy": 0.85,
    "train/layer0/violation_mean": 0.0031,
    "train/layer1/violation_mean": 0.5,
}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def run(make_run: MakeRun) -> RunFolder:
    return make_run([{"test/accuracy": [0.5]}] * 3)


@pytest.fixture
def units(run: RunFolder) -> list[Unit]:
    return run.read_record().units


def ended(unit: str, state: str = FINISHED, reason: str = "") -> UnitResult:
    return UnitResult(unit, state, 10, 10, Rule.LAST_EPOCH, dict(METRICS), 1.0, reason)


def plain(clock: Clock) -> tuple[PlainProgress, io.StringIO]:
    file = io.StringIO()
    return PlainProgress(Console(file=file), clock), file


def test_plain_lines_come_no_oftener_than_every_three_seconds(
    run: RunFolder, units: list[Unit]
) -> None:
    clock = Clock()
    progress, file = plain(clock)
    progress.run_started(run, units, 10_000)
    for epoch in range(1, 10_001):  # ten seconds at a thousand epochs per second
        clock.now = epoch / 1000
        progress.epoch_done("fold-00", epoch, METRICS)
    lines = file.getvalue().splitlines()
    assert len(lines) == 1 + 3
    assert lines[0] == "MUTAG, lagrangian, sum, G = squared, K = 3: 3 units, 10000 epochs"
    assert lines[1] == (
        "0/3 units, elapsed 3.0 s, ETA 27 s, fold-00 at epoch 3000/10000, loss 0.412, "
        "train 90.0 %, test 85.0 %, violation 3.1e-3 0.5"
    )


def test_plain_lines_become_rarer_in_long_runs(run: RunFolder, units: list[Unit]) -> None:
    clock = Clock()
    progress, file = plain(clock)
    progress.run_started(run, units, 100_000)
    for second in range(1, 3601):
        clock.now = float(second)
        progress.epoch_done("fold-00", second, METRICS)
    assert 120 <= len(file.getvalue().splitlines()) <= 180


def test_units_side_by_side_share_a_line(run: RunFolder, units: list[Unit]) -> None:
    clock = Clock()
    progress, file = plain(clock)
    progress.run_started(run, units, 100)
    progress.epoch_done("fold-00", 3, METRICS)
    clock.now = 4.0
    progress.epoch_done("fold-01", 7, {**METRICS, "test/accuracy": 0.95})
    assert "2 units at epoch 3-7/100" in file.getvalue()
    assert "test 90.0 %" in file.getvalue()


def test_divergence_is_said_at_once(run: RunFolder, units: list[Unit]) -> None:
    progress, file = plain(Clock())
    progress.run_started(run, units, 100)
    progress.unit_ended("fold-01", ended("fold-01", DIVERGED, "not\x1b[1m\nfinite"))
    assert file.getvalue().splitlines()[-1] == "fold-01 diverged after 10 epochs: not[1m finite"


def test_eta_counts_units_that_run_side_by_side(run: RunFolder, units: list[Unit]) -> None:
    clock = Clock()
    progress, _ = plain(clock)
    progress.run_started(run, units, 101)
    for epoch in (1, 51):
        clock.now = epoch / 10
        for unit in ("fold-00", "fold-01"):
            progress.epoch_done(unit, epoch, METRICS)
    # 100 epochs in 5 s; 50 + 50 + 101 are left.
    assert progress._tracker.remaining() == pytest.approx(201 * 5 / 100)


def test_eta_does_not_count_epochs_computed_before_a_resume(
    run: RunFolder, units: list[Unit]
) -> None:
    clock = Clock()
    progress, _ = plain(clock)
    progress.run_started(run, units[:1], 1000)
    progress.epoch_done("fold-00", 901, METRICS)
    clock.now = 10.0
    progress.epoch_done("fold-00", 911, METRICS)
    assert progress._tracker.remaining() == pytest.approx(89.0)


def test_no_control_characters_in_a_pipe(run: RunFolder, units: list[Unit]) -> None:
    progress, file = plain(Clock())
    progress.run_started(run, units, 10)
    for epoch in range(1, 11):
        progress.epoch_done("fold-00", epoch, METRICS)
    progress.unit_ended("fold-00", ended("fold-00"))
    progress.run_ended(run, {})
    assert all(c.isprintable() or c == "\n" for c in file.getvalue())


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_a_pipe_gets_plain_lines_whatever_the_environment_forces(
    monkeypatch: pytest.MonkeyPatch, variable: str, run: RunFolder, units: list[Unit]
) -> None:
    monkeypatch.setenv(variable, "1")
    file = io.StringIO()
    progress = make_progress(Console(file=file), quiet=False)
    progress.run_started(run, units, 10)
    progress.epoch_done("fold-00", 1, METRICS)
    progress.unit_ended("fold-00", ended("fold-00", DIVERGED, "not finite"))
    progress.run_ended(run, {})
    assert "fold-00 diverged after 10 epochs: not finite" in file.getvalue().splitlines()
    assert all(c.isprintable() or c == "\n" for c in file.getvalue())


def test_quiet_shows_nothing(run: RunFolder, units: list[Unit]) -> None:
    file = io.StringIO()
    progress = make_progress(Console(file=file, force_terminal=True), quiet=True)
    assert isinstance(progress, QuietProgress)
    progress.run_started(run, units, 10)
    progress.epoch_done("fold-00", 1, METRICS)
    progress.unit_ended("fold-00", ended("fold-00", DIVERGED))
    progress.run_ended(run, {})
    assert file.getvalue() == ""


def live(
    run: RunFolder, units: list[Unit], no_color: bool = False
) -> tuple[LiveProgress, io.StringIO]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120, no_color=no_color)
    progress = LiveProgress(console)
    progress.run_started(run, units, 10)
    return progress, file


def test_live_display_shows_units_values_and_troubles(run: RunFolder, units: list[Unit]) -> None:
    progress, file = live(run, units, no_color=True)
    progress.epoch_done("fold-00", 4, METRICS)
    progress.unit_ended("fold-01", ended("fold-01"))
    progress.unit_ended("fold-02", ended("fold-02", DIVERGED, "not finite"))
    progress.close()
    output = file.getvalue()
    for text in ("4/10", "0.412", "90.0 %", "85.0 %", "3.1e-3 0.5", "2/3 units", "violation per"):
        assert text in output
    assert "fold-02 diverged after 10 epochs: not finite" in output


def test_live_display_costs_next_to_nothing(run: RunFolder, units: list[Unit]) -> None:
    progress, file = live(run, units)
    before = time.perf_counter()
    for epoch in range(1, 20_001):
        progress.epoch_done("fold-00", epoch, METRICS)
    spent = time.perf_counter() - before
    drawn = file.getvalue().count("fold-00")
    progress.close()
    assert spent / 20_000 < 100e-6
    assert drawn <= 1 + 10 * spent


def cursor_shown(output: str) -> bool:
    return output.rindex("\x1b[?25h") > output.rindex("\x1b[?25l")


def test_the_cursor_is_never_left_hidden(run: RunFolder, units: list[Unit]) -> None:
    progress, file = live(run, units)
    assert cursor_shown(file.getvalue())  # already now: a kill must not leave a broken terminal
    progress.run_ended(run, {})
    progress.close()
    assert cursor_shown(file.getvalue())


PROGRAM = """
import sys, time
from rich.console import Console
from lpgnn_cli.reporting.progress import LiveProgress, make_progress
from lpgnn_cli.runfolder import RunFolder
run = RunFolder.open(sys.argv[1])
progress = make_progress(Console(), quiet=False)
assert isinstance(progress, LiveProgress)
progress.run_started(run, run.read_record().units, 1000)
for epoch in range(1, 1000):
    progress.epoch_done("fold-00", epoch, {"test/accuracy": 0.5})
    time.sleep(0.05)
"""


def test_ctrl_c_gives_the_terminal_back(run: RunFolder) -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(run.path)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
        start_new_session=True,
    )
    os.close(follower)
    output = b""
    while b"fold-00" not in output:
        output += os.read(leader, 4096)
    process.send_signal(signal.SIGINT)
    while True:
        try:
            output += os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
    process.wait(timeout=20)
    os.close(leader)
    assert cursor_shown(output.decode())
