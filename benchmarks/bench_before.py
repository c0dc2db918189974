"""One training epoch of an earlier version and of this one, in turns, with the recipes of then.

Both are child processes on the same data: one thread, CPU time, all graphs at once. The earlier
version is taken from the repository's history, and run by the same Python.

    LPGNN_DATA=<folder with IMDB-BINARY.zip> python benchmarks/bench_before.py [--turns 15]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from performance_page import REPOSITORY, store
from recipe_then import COMMIT, RECIPES, recipe_then

WARM_UP_EPOCHS = 3
# Epochs that are shorter follow one another, as they do in a run.
SECONDS_OF_A_TURN = 0.05
CASES = {
    "K = 1": [],
    "K = 3": ["layers=3"],
    "one-shot": ["propagation.updates=one_shot"],
}
NOTE = """\
Milliseconds per epoch, one thread, CPU time: version 0.1.0 ({before}) in turns with this one, both
with the recipes of then: sum, relu, states of 16 apart from the loss, all graphs at once, and f_r
normalised but for IMDB-B. The bound of the weights was one of each matrix then, and is one that
proves convergence now. In brackets the quartiles."""


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--datasets", nargs="+", default=list(RECIPES))
    words.add_argument("--turns", type=int, default=15, help="of either version")
    words.add_argument("--seconds", type=float, default=20.0, help="fewer turns of slow ones")
    words.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    asked = words.parse_args()
    if asked.child:
        run_child(asked.child)
        return
    columns = ["dataset", "recipe of then", "ms before", "ms", "before ÷ now"]
    with tempfile.TemporaryDirectory() as folder:
        unpack(COMMIT, Path(folder))
        for dataset in asked.datasets:
            for name, more in CASES.items():
                before, now = compare(Path(folder), dataset, more, asked.turns, asked.seconds)
                ratio = f"{statistics.median(before) / statistics.median(now):.2f}"
                row = [dataset, name, spread(before), spread(now), ratio]
                print(*row, flush=True)
                table = {"note": NOTE.format(before=COMMIT), "columns": columns, "rows": [row]}
                store("One epoch, before and after", table, key=2)


def unpack(commit: str, folder: Path) -> None:
    """What an earlier version consists of."""
    archive = ["git", "archive", commit, "src", "conf"]
    packed = subprocess.run(archive, cwd=REPOSITORY, capture_output=True, check=False)
    if packed.returncode:
        sys.exit(f"{commit} is not in the history of this repository: fetch it, and try again.")
    subprocess.run(["tar", "-x"], input=packed.stdout, cwd=folder, check=True)


def compare(
    then: Path, dataset: str, more: list[str], turns: int, seconds: float
) -> tuple[list[float], list[float]]:
    """Milliseconds of the epochs of either version."""
    versions = [
        (then, [f"dataset={dataset}", *more]),
        (REPOSITORY, [f"dataset={dataset}", *recipe_then(dataset), *more]),
    ]
    children = [start(checkout, settings) for checkout, settings in versions]
    try:
        for child in children:
            answer(child)
        found: tuple[list[float], list[float]] = ([], [])
        began = time.monotonic()
        while len(found[0]) < 3 or (len(found[0]) < turns and time.monotonic() - began < seconds):
            for child, times in zip(children, found, strict=True):
                assert child.stdin is not None
                child.stdin.write("epoch\n")
                child.stdin.flush()
                times.append(1e3 * float(answer(child)))
        return found
    finally:
        for child in children:
            child.communicate()


def start(checkout: Path, settings: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, "--child", *settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(checkout / "src")},
    )


def answer(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    said = child.stdout.readline().strip()
    if not said:
        sys.exit("one of the versions ended early; it said why above")
    return said


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def run_child(settings: list[str]) -> None:
    """Train for every line that comes in, and answer with the seconds of an epoch."""
    from lpgnn_cli.allocator import tune_allocator

    tune_allocator()
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    epoch = epoch_of(settings)
    for _ in range(WARM_UP_EPOCHS):
        epoch()
    print("ready", flush=True)
    for _ in sys.stdin:
        began, epochs, passed = time.process_time(), 0, 0.0
        while passed < SECONDS_OF_A_TURN:
            epoch()
            epochs, passed = epochs + 1, time.process_time() - began
        print(passed / epochs, flush=True)


def epoch_of(settings: list[str]) -> Callable[[], object]:
    """A function that trains one epoch, in the words of the version that is run."""
    from lpgnn_cli.config.compose import compose
    from lpgnn_cli.data import load_dataset
    from lpgnn_cli.training.evaluation import to_floats

    config = compose("train", [*settings, "tracking=none"])
    batch = load_dataset(config.dataset, config.data.root, seed=0).batch
    try:
        build: Any = import_module("lpgnn_cli.training.build")
    except ImportError:
        from lpgnn_cli.data.part import Part
        from lpgnn_cli.model.network import DataShape
        from lpgnn_cli.propagation import build_propagation
        from lpgnn_cli.training.epoch import train_epoch

        sets, shape = {"train": batch}, DataShape.of(batch)
        propagation = build_propagation(config, shape, sets, like=batch.features)
        return lambda: to_floats(train_epoch(propagation, 1, Part(batch)))
    learner = build.build_learner(config, {"train": build.Part(batch)})
    return lambda: to_floats(learner.train_epoch(1, batch))


if __name__ == "__main__":
    main()
