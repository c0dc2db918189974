"""A small finished run, to be damaged and abused, and `lpgnn` in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.runfolder import RunFolder

SOBER = ("tracking=none", "threads=1", "protocol.workers=1", "figures=false", "quiet=true")
SMALL = (
    "dataset=clique",
    "recipe=none",
    "dataset.graphs=8",
    "dataset.nodes=5",
    "state=[4]",
    "inference.steps=5",
    "device=cpu",
)
KFOLD = ("protocol=kfold", "protocol.folds=2")

Lpgnn = Callable[..., subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of all runs, and a cache beside it."""
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "cache"))
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.setenv(name, "")  # whatever a test leaves there is taken away again
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folds of three epochs; tests take copies of it."""
    root = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LPGNN_RUNS", str(root))
        assert main(["train", *SOBER, *SMALL, *KFOLD, "epochs=3"]) == 0
    (record,) = root.glob("train/*/*/run.json")
    return record.parent


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(trained, tmp_path / "foreign")))


@pytest.fixture
def lpgnn(tmp_path: Path) -> Lpgnn:
    """Start a command, in a session and a process group of its own."""

    def start(
        *words: str, extra: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "lpgnn_cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(extra or {})},
            **options,
        )

    return start


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def one_sentence(said: str, *, about: str = "") -> bool:
    """What a user is to see when something is wrong."""
    lines: Sequence[str] = said.strip().splitlines()
    return len(lines) == 1 and lines[0].startswith("lpgnn: ") and about in lines[0]
