"""What a command costs: wall time, and the CPU time of all of its processes."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# prctl: processes whose parent has gone become ours, so that their time is counted too.
SET_CHILD_SUBREAPER = 36


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def run_lpgnn(
    words: Sequence[str],
    surroundings: Mapping[str, str] | None = None,
    checkout: Path | None = None,
) -> Spent:
    """`lpgnn` with these words, of this package or of the source tree in another checkout."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    environment = {**os.environ, **(surroundings or {})}
    environment.pop("MLFLOW_TRACKING_URI", None)
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout / "src")
    command = [sys.executable, "-m", "lpgnn_cli", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command, env=environment, cwd=checkout, capture_output=True, text=True, check=False
    )
    wall = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"lpgnn {' '.join(words)}: {done.stderr.strip()}")
    _wait_for_all()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _wait_for_all() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return
