from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from lpgnn_cli.commands.ui import ENVIRONMENT

from .fake_trainer import FakeTrainer

HERE = Path(__file__).parent
MakeTrainer = Callable[..., FakeTrainer]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings are errors, but not those that MLflow causes in the libraries it uses."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:mlflow"))
            item.add_marker(pytest.mark.filterwarnings("ignore:The ``noload``:DeprecationWarning"))


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of all runs, and the current folder beside it."""
    root = tmp_path / "runs"
    root.mkdir()
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("LPGNN_RUNS", str(root))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return root


@pytest.fixture
def make_trainer(runs: Path) -> MakeTrainer:
    return lambda **options: FakeTrainer(runs, **options)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database to copy: making one takes seconds."""
    from lpgnn_cli.tracking.store import open_client

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    open_client(f"sqlite:///{path}").search_experiments()
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A real `mlflow server` on loopback, to be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = {
            "--host": "127.0.0.1",
            "--port": str(self.port),
            "--workers": "1",
            "--backend-store-uri": f"sqlite:///{self.folder / 'mlflow.db'}",
            "--artifacts-destination": str(self.folder / "artifacts"),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *chain(*options.items())],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **ENVIRONMENT},
        )
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "the server died"
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.3)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    server = Server(folder)
    yield server
    server.kill()
