"""Sweeps as users start them, in processes of their own."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SABOTEUR = Path(__file__).with_name("saboteur.py")
SITE = str(Path(__file__).with_name("site"))
KARATE = ("dataset=karate", "tracking=none", "layers=1", "state=[4]", "aggregator.hidden=[4]")
PATIENCE = 600.0


@dataclass
class Sweeper:
    """One folder of runs, and the sweeps that go into it."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    # What all of them share.
    words: Sequence[str] = KARATE

    def start(self, words: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.python, str(SABOTEUR), "sweep", *self.words, *words],
            env={
                **os.environ,
                "LPGNN_RUNS": str(self.root),
                "SABOTAGE_LOG": str(self.log),
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join([SITE, os.environ.get("PYTHONPATH", "")]),
                **self.environment,
                **environment,
            },
            cwd=self.root.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, words: Sequence[str], **environment: str) -> tuple[int, str]:
        process = self.start(words, **environment)
        said, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, said

    @property
    def log(self) -> Path:
        return self.root.parent / f"{self.root.name}-epochs.log"

    def epochs(self) -> Counter[tuple[str, int]]:
        """How often each epoch of each job was computed."""
        if not self.log.is_file():
            return Counter()
        lines = (line.split() for line in self.log.read_text().splitlines())
        return Counter((name, int(epoch)) for name, epoch in lines)

    def states(self) -> dict[str, str]:
        """State of every job that has started, by the name of its folder."""
        jobs = (self.root / "sweep" / "jobs").glob("*/run.json")
        return {path.parent.name: json.loads(path.read_text())["state"] for path in jobs}

    def finished(self) -> int:
        return list(self.states().values()).count("finished")

    def folder(self) -> Path:
        """That of the sweep that ended last."""
        found = (self.root / "sweep").glob("*/leaderboard.csv")
        return max(found, key=lambda path: path.stat().st_mtime_ns).parent

    def leaderboard(self, without: Sequence[str] = ("seconds",)) -> list[Mapping[str, str]]:
        with (self.folder() / "leaderboard.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [{k: v for k, v in row.items() if k not in without} for row in rows]

    def wait_for_finished(self, count: int, process: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.finished() < count:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)


MakeSweeper = Callable[[str], Sweeper]


@pytest.fixture
def slurm() -> None:
    """There is a cluster, or the test is skipped."""
    if shutil.which("sinfo") is None or subprocess.run(["sinfo"], capture_output=True).returncode:
        pytest.skip("there is no Slurm here: make test-slurm")


@pytest.fixture
def make_sweeper(tmp_path: Path) -> MakeSweeper:
    """A `Sweeper` by name."""

    def make(name: str) -> Sweeper:
        (tmp_path / name).mkdir()
        return Sweeper(tmp_path / name)

    return make


@pytest.fixture
def sweeper(make_sweeper: MakeSweeper) -> Sweeper:
    return make_sweeper("runs")
