"""What a sweep costs beside the training itself: CPU seconds per job, in process.

Imports and datasets are there once for all jobs, so that the first job pays for them: two sweeps of
different length, after one to warm up, tell what one more job costs.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from lpgnn_cli.cli import main
from lpgnn_cli.training import execute

FEW, MANY = 3, 15
LIMIT = 0.3
SHORT = ("epochs=3", "layers=1", "state=[4]", "inference.steps=5")
TRAINING = 0.0


def timed(train_unit: Callable[..., Any]) -> Callable[..., Any]:
    """`train_unit`, its CPU time added up."""

    def run(*arguments: Any) -> Any:
        global TRAINING
        began = time.process_time()
        try:
            return train_unit(*arguments)
        finally:
            TRAINING += time.process_time() - began

    return run


def sweep(dataset: str, jobs: int, first_seed: int) -> tuple[float, float]:
    """CPU seconds of a sweep of so many jobs: altogether, and of training alone."""
    global TRAINING
    TRAINING = 0.0
    began = time.process_time()
    words = [f"dataset={dataset}", f"seed=range({first_seed},{first_seed + jobs})", *SHORT]
    words += ["protocol.folds=2"] if dataset == "mutag" else []
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(["sweep", *words, "tracking=none", "hydra/launcher=basic"])
    assert code == 0
    return time.process_time() - began, TRAINING


def bench(dataset: str) -> None:
    sweep(dataset, 2, 1000)
    few, few_training = sweep(dataset, FEW, 0)
    many, many_training = sweep(dataset, MANY, 100)
    jobs = MANY - FEW
    training = (many_training - few_training) / jobs
    overhead = (many - few) / jobs - training
    verdict = "below" if overhead < LIMIT else "ABOVE"
    print(
        f"{dataset:8} {jobs} more jobs: {overhead:.3f} s of CPU per job beside {training:.3f} s of "
        f"training, {verdict} the limit of {LIMIT} s",
        flush=True,
    )


if __name__ == "__main__":
    execute.train_unit = timed(execute.train_unit)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LPGNN_RUNS"] = folder
        bench("karate")
        bench("mutag")
