"""What a job of a sweep costs beside its training: CPU seconds, as a user runs it.

    python benchmarks/bench_sweep.py [--jobs N]

Two sweeps of different length tell what one more job costs: the start and the end of a sweep are
in both. All processes count, those that log to MLflow among them. Training is what the jobs took
for their epochs, from jobs that train for one epoch only.
"""

from __future__ import annotations

import argparse
import tempfile

from performance_page import store
from whole_command import run_lpgnn

FEW = 6
# About half a second of training.
EPOCHS = 60
NOTE = """\
CPU seconds per job of `lpgnn sweep dataset=karate seed=range(0,60)`, all processes, from two sweeps
of different length. Training: what 60 epochs take more than one epoch, without tracking. Beyond it:
composing, starting, the test phase, files and, in the second row, MLflow."""


def cpu_of_sweep(jobs: int, epochs: int, tracking: str) -> float:
    """CPU seconds of all processes of a sweep."""
    words = ["dataset=karate", f"seed=range(0,{jobs})", f"epochs={epochs}", f"tracking={tracking}"]
    with tempfile.TemporaryDirectory() as folder:
        surroundings = {"LPGNN_RUNS": folder, "OMP_NUM_THREADS": "1"}
        return run_lpgnn(["sweep", *words], surroundings).cpu


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--jobs", type=int, default=60)
    jobs: int = words.parse_args().jobs

    def per_job(epochs: int, tracking: str) -> float:
        many, few = (cpu_of_sweep(count, epochs, tracking) for count in (jobs, FEW))
        return (many - few) / (jobs - FEW)

    training = per_job(EPOCHS, "none") - per_job(1, "none")
    rows = []
    for tracking in ("none", "mlflow"):
        beyond = per_job(EPOCHS, tracking) - training
        rows.append([f"tracking={tracking}", f"{training:.2f}", f"{beyond:.2f}"])
        print(f"tracking={tracking}: {training:.2f} s training, {beyond:.2f} s beyond", flush=True)
    columns = ["sweep", "training per job, s", "beyond training per job, s"]
    store("A job of a sweep", {"note": NOTE, "columns": columns, "rows": rows})


if __name__ == "__main__":
    main()
