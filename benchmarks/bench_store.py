"""How large the store of MLflow becomes: 6,000 epochs of karate, three layers.

    python benchmarks/bench_store.py [--epochs N]

The curves of the run folder have every epoch; those of the store are thinned.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from performance_page import store

NOTE = """\
`lpgnn train dataset=karate epochs=6000`, all settings as shipped. The run folder has the curves in
full, the checkpoints and the figures; the artifacts are copies of them."""


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--epochs", type=int, default=6000)
    epochs = words.parse_args().epochs
    with tempfile.TemporaryDirectory() as folder:
        surroundings = {**os.environ, "LPGNN_RUNS": folder, "OMP_NUM_THREADS": "1"}
        surroundings.pop("MLFLOW_TRACKING_URI", None)
        command = [sys.executable, "-m", "lpgnn_cli", "train", "dataset=karate", "quiet=true"]
        command += [f"epochs={epochs}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=surroundings)
        runs = Path(folder)
        database = runs / "mlflow.db"
        with sqlite3.connect(database) as connection:
            (points,) = connection.execute("SELECT count(*) FROM metrics").fetchone()
        sizes = [size(database), size(runs / "mlartifacts"), size(runs / "train")]
    row = [f"{epochs:,}", f"{points:,}", *(f"{megabytes:.1f}" for megabytes in sizes)]
    columns = ["epochs", "points of metrics", "store, MB", "artifacts, MB", "run folder, MB"]
    print(dict(zip(columns, row, strict=True)), flush=True)
    store("Size of the store", {"note": NOTE, "columns": columns, "rows": [row]})


def size(path: Path) -> float:
    """In MB."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


if __name__ == "__main__":
    main()
