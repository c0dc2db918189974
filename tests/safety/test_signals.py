"""Whoever ends a run, and however: a checkpoint, the state, the way on, the code, nothing left."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.runfolder import FINISHED, INTERRUPTED, RUNNING, RunFolder
from lpgnn_cli.signals import Interruption, StopFlag, interrupting

from .conftest import SMALL, Lpgnn, one_sentence

ENDLESS = (
    *SMALL,
    "tracking=none",
    "threads=1",
    "figures=false",
    "quiet=true",
    "epochs=999999",
    "checkpoint_every=999999",
    "protocol.patience=999999",
    "protocol.seeds=2",
)
# Of a machine that is busy with other things, too.
PATIENCE = 300.0
SLOW = [pytest.mark.slow, pytest.mark.ci]


def only_run(runs: Path) -> RunFolder:
    (record,) = runs.glob("train/*/*/run.json")
    return RunFolder(record.parent)


def wait_until_it_trains(runs: Path, process: subprocess.Popen[str], units: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        files = runs.glob("train/*/*/units/*/metrics.csv")
        if sum(len(file.read_text().splitlines()) > 3 for file in files) >= units:
            return
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def group_of(leader: int) -> list[int]:
    """The processes of its session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def assert_nothing_is_left(leader: int) -> None:
    deadline = time.monotonic() + 60
    while group_of(leader):
        assert time.monotonic() < deadline, group_of(leader)
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGTERM, 2), pytest.param(signal.SIGHUP, 1, marks=SLOW)]
)
def test_a_signal_to_all_processes_of_a_run(
    number: signal.Signals, times: int, lpgnn: Lpgnn, runs: Path
) -> None:
    """Twice, as `timeout` does: once to its child, once to the group."""
    process = lpgnn("train", *ENDLESS, "protocol.workers=2")
    wait_until_it_trains(runs, process, units=2)
    for _ in range(times):
        os.killpg(process.pid, number)
    _, said = process.communicate(timeout=PATIENCE)
    run = only_run(runs)
    assert process.returncode == 128 + number
    assert said == f"lpgnn: interrupted; go on with `lpgnn train resume={run.path}`.\n"
    record = run.read_record()
    assert record.state == INTERRUPTED
    for unit in record.units:
        result = run.read_result(unit.name)
        assert result is not None
        assert (result.state, result.reason) == (INTERRUPTED, "stopped by the user")
        assert result.epochs == len(run.read_metrics(unit.name)) > 0
        assert (run.unit(unit.name) / "last.pt").is_file()
    assert_nothing_is_left(process.pid)
    epochs = max(len(run.read_metrics(unit.name)) for unit in record.units) + 1
    assert main(["train", f"resume={run.path}", f"epochs={epochs}", "quiet=true"]) == 0
    assert run.read_record().state == FINISHED


def test_a_cluster_that_signals_every_process_itself(lpgnn: Lpgnn, runs: Path) -> None:
    """Not the group, but each one, the workers of other sessions and the fork server included."""
    process = lpgnn("train", *ENDLESS, "protocol.workers=2")
    wait_until_it_trains(runs, process, units=2)
    for pid in group_of(process.pid):
        os.kill(pid, signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    run = only_run(runs)
    results = [run.read_result(unit.name) for unit in run.read_record().units]
    assert [result.state for result in results if result] == [INTERRUPTED] * 2
    assert_nothing_is_left(process.pid)


@pytest.mark.parametrize(
    "delay", [0.0, pytest.param(0.5, marks=SLOW), pytest.param(1.5, marks=SLOW)]
)
def test_ctrl_c_while_workers_start(delay: float, lpgnn: Lpgnn, runs: Path) -> None:
    process = lpgnn("train", *ENDLESS, "protocol.workers=2")
    deadline = time.monotonic() + PATIENCE
    while not list(runs.glob("train/*/*/run.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in said
    assert one_sentence(said, about="interrupted")
    assert process.returncode == 130
    assert only_run(runs).read_record().state in (INTERRUPTED, RUNNING)
    assert_nothing_is_left(process.pid)


def test_ctrl_c_when_all_is_done(lpgnn: Lpgnn, runs: Path) -> None:
    """What libraries do while Python ends must not be interrupted, which would be a traceback."""
    process = lpgnn("train", *SMALL, "epochs=2")
    assert process.stdout is not None
    while "evaluate" not in (line := process.stdout.readline()):
        assert line, "the table ended before its last line"
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)
    said = process.communicate(timeout=PATIENCE)[1]
    assert "Traceback" not in said, said
    assert only_run(runs).read_record().state == FINISHED
    assert_nothing_is_left(process.pid)


def test_a_signal_that_an_import_swallows(runs: Path) -> None:
    """Raised in the midst of somebody else's code, it is caught there; the run still stops."""
    process = subprocess.run(
        [sys.executable, "-c", SWALLOWING, "train", *ENDLESS, "protocol.workers=1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.returncode == 143, process.stderr
    assert one_sentence(process.stderr, about="interrupted; go on with `lpgnn train resume=")
    assert only_run(runs).read_record().state == INTERRUPTED


# Python itself prints what is raised in such a callback, and goes on.
SWALLOWING = """
import os, signal, sys, weakref
class Thing: pass
class Importing:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            sys.meta_path.remove(self)
            thing = Thing()
            kept = weakref.ref(thing, lambda ref: os.kill(os.getpid(), signal.SIGTERM))
            del thing
sys.meta_path.insert(0, Importing())
from lpgnn_cli.__main__ import program
sys.exit(program())
"""


def test_what_a_signal_has_ended_does_not_end_what_follows() -> None:
    """In one process, as in a notebook."""
    for _ in range(2):
        with StopFlag().listening() as stop:
            assert not stop()
        with pytest.raises(Interruption), interrupting():
            signal.raise_signal(signal.SIGTERM)
    with interrupting():
        with suppress(Interruption):
            signal.raise_signal(signal.SIGTERM)
        with StopFlag().listening() as stop:
            assert (stop(), stop.number) == (True, signal.SIGTERM)


def test_a_terminal_that_goes_away(runs: Path) -> None:
    ours, theirs = pty.openpty()
    words = [word for word in ENDLESS if word != "quiet=true"]  # a display that is drawn on it
    process = subprocess.Popen(
        [sys.executable, "-c", TERMINAL, "train", *words, "protocol.workers=2"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    deadline = time.monotonic() + PATIENCE
    while sum(1 for file in runs.glob("train/*/*/units/*/metrics.csv") if file.stat().st_size) < 2:
        try:
            os.read(ours, 1 << 16)
        except BlockingIOError:
            time.sleep(0.05)
        assert time.monotonic() < deadline
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 129
    run = only_run(runs)
    assert run.read_record().state == INTERRUPTED
    assert all((run.unit(u.name) / "last.pt").is_file() for u in run.read_record().units)
    assert_nothing_is_left(process.pid)


# Takes the terminal as its own, as a login shell does.
TERMINAL = """
import fcntl, sys, termios
if __name__ == "__main__":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    from lpgnn_cli.cli import main
    sys.exit(main())
"""


def test_one_run_is_never_computed_twice(lpgnn: Lpgnn, runs: Path, run: RunFolder) -> None:
    first = lpgnn("train", *ENDLESS, "protocol.workers=1")
    wait_until_it_trains(runs, first, units=1)
    own = only_run(runs)
    assert own.actual_state(own.read_record()) == RUNNING
    second = lpgnn("train", f"resume={own.path}")
    _, said = second.communicate(timeout=PATIENCE)
    assert second.returncode == 2
    assert one_sentence(said, about=f"is still running, as process {first.pid} of ")
    first.kill()
    first.communicate()
    assert own.read_record().state == RUNNING
    assert own.actual_state(own.read_record()) == INTERRUPTED
    # Two at once: one goes on, one is told.
    both = [lpgnn("train", f"resume={run.path}", "epochs=3000", "quiet=true") for _ in range(2)]
    said_by = [process.communicate(timeout=PATIENCE)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said_by
    assert len(run.read_metrics("fold-00")) == 3000


def test_the_dashboard_does_not_outlive_its_command(tmp_path: Path) -> None:
    """A program behind the guard, whose owner is killed."""
    program = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))"
    program += "; time.sleep(600)"
    owner = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-m', 'lpgnn_cli.guard', sys.executable, '-c', "
        f"{program!r}], stdin=subprocess.PIPE, start_new_session=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", owner])
    deadline = time.monotonic() + 60
    while not ((tmp_path / "pid").is_file() and (tmp_path / "pid").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    guarded = Path("/proc") / (tmp_path / "pid").read_text()
    assert guarded.exists()
    process.kill()
    process.wait()
    while guarded.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
