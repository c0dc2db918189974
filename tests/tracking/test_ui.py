"""`lpgnn ui`, short of a browser."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lpgnn_cli.cli import main


def test_without_a_store_there_is_nothing_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui"]) == 2
    assert "nothing to show yet" in capsys.readouterr().err


def test_a_server_is_a_dashboard_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ui", "--uri", "http://127.0.0.1:9"]) == 0
    assert "http://127.0.0.1:9" in capsys.readouterr().out


def test_garbage_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "mlflow.db").write_text("this is no database")
    assert main(["ui"]) == 2
    assert "mlflow.db is not an MLflow store: file is not a database." in capsys.readouterr().err


@pytest.mark.ui
def test_starts_on_a_free_port_and_stops_on_ctrl_c(runs: Path, empty_store: Path) -> None:
    (runs / "mlflow.db").write_bytes(empty_store.read_bytes())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-m", "lpgnn_cli", "ui", "--port", str(port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        assert f"Port {port} is taken" in process.stdout.readline()
        assert "starting" in process.stdout.readline()
        assert "Dashboard: http://127.0.0.1:" in process.stdout.readline()
    server = children(process.pid)
    assert server
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "stopped" in rest
    for pid in server:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert list(Path.cwd().iterdir()) == []


def children(pid: int) -> list[int]:
    """The processes that this one started, and theirs."""
    listing = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listing.splitlines()]
    direct = [child for child, parent in pairs if parent == pid]
    return direct + [grandchild for child in direct for grandchild in children(child)]
