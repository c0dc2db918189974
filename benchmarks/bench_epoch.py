"""One training epoch of lpgnn and of its rivals, in turns.

Every variant is a child process with its own model on the same data, and takes turns with lpgnn, of
one epoch or as many as 50 ms hold, so that what disturbs the machine disturbs both. On one thread
CPU time is taken, on several wall time. K = 1, sum, G squared, gradient updates, state and hidden
50, unless a name says otherwise.

    LPGNN_DATA=<folder with IMDB-BINARY.zip> python benchmarks/bench_epoch.py [--epochs 9]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from lpgnn_cli.idle import SPINS
from performance_page import store
from rivals import LPGNN, UNTUNED, VARIANTS, load

WARM_UP_EPOCHS = 2
FEWEST_TURNS = 3
# Seconds of a turn, at least: short epochs follow one another, as they do in training.
TURN = 0.05
NOTE = """\
Milliseconds per epoch: the median, and in brackets the quartiles. The last column is a variant's
median divided by that of lpgnn in the same turns. Floor: the matrix products on nodes, the two
passes over arcs and one pass of Adam over the states, alone. PyG and the plain formulation run with
the settings that the C library and OpenMP have of their own, as their users run them. Shipped
recipe: smaller layers, a step per 64 graphs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["mutag", "imdb_b", "proteins", "nci1"])
    parser.add_argument("--variants", nargs="+", default=None, help="some of the names, and lpgnn")
    parser.add_argument("--epochs", type=int, default=9, help="timed turns of each variant")
    parser.add_argument("--seconds", type=float, default=3.0, help="fewer turns of slow ones")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, dataset, threads = arguments.child
        run_child(name, dataset, int(threads))
        return
    for threads in dict.fromkeys(arguments.threads):
        title = f"One epoch, {'one thread' if threads == 1 else f'{threads} threads'}"
        for dataset in arguments.datasets:
            turns = Turns(arguments.epochs, arguments.seconds)
            rows = compare(dataset, threads, turns, arguments.variants)
            columns = ["dataset", "variant", "ms per epoch", "÷ lpgnn"]
            table = Table(*columns, title=title)
            for row in rows:
                table.add_row(*row)
            Console().print(table)
            # All variants of a dataset took turns: they are kept, or measured again, together.
            store(title, {"note": NOTE, "columns": columns, "rows": rows}, key=1)


class Turns(NamedTuple):
    """How often a variant takes turns with lpgnn: so often, or until so many seconds are over."""

    most: int
    seconds: float

    def take(self, turn: Callable[[], tuple[float, float]]) -> list[tuple[float, float]]:
        started, taken = time.monotonic(), [turn() for _ in range(FEWEST_TURNS)]
        while len(taken) < self.most and time.monotonic() - started < self.seconds:
            taken.append(turn())
        return taken


def compare(dataset: str, threads: int, turns: Turns, wanted: list[str] | None) -> list[list[str]]:
    """One row per variant, each in turns with lpgnn; none for those that miss data or packages."""
    names = [name for name in VARIANTS if name != LPGNN and (wanted is None or name in wanted)]
    ours = start_child(LPGNN, dataset, threads)
    if not answer(ours):
        return []
    rows, all_ours = [], []
    for name in names:
        rival = start_child(name, dataset, threads)
        if not answer(rival):
            continue
        pairs = turns.take(partial(turn, ours, rival))
        rival.communicate()
        mine, others = map(list, zip(*pairs, strict=True))
        all_ours += mine
        ratio = statistics.median(others) / statistics.median(mine)
        rows.append([dataset, name, spread(others), f"{ratio:.2f}"])
    ours.communicate()
    return [[dataset, LPGNN, spread(all_ours), "1"], *rows]


def turn(ours: subprocess.Popen[str], rival: subprocess.Popen[str]) -> tuple[float, float]:
    return epoch_of(ours), epoch_of(rival)


def epoch_of(child: subprocess.Popen[str]) -> float:
    """Milliseconds of an epoch in the next turn."""
    assert child.stdin is not None
    child.stdin.write("epoch\n")
    child.stdin.flush()
    return 1e3 * float(answer(child))


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"


def start_child(name: str, dataset: str, threads: int) -> subprocess.Popen[str]:
    wanted = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    if name not in UNTUNED:
        # The child's own wish would come too late: the table of variants brings torch along.
        wanted["GOMP_SPINCOUNT"] = SPINS
    return subprocess.Popen(
        [sys.executable, __file__, "--child", name, dataset, str(threads)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **wanted},
    )


def answer(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def run_child(name: str, dataset: str, threads: int) -> None:
    """Train a turn for every line that comes in, and answer with the seconds of its epochs.

    Their median: whoever's turn it was before has threads that still spin for milliseconds.
    """
    if name not in UNTUNED:
        from lpgnn_cli.tuning import tune_process

        tune_process()
    import torch

    from lpgnn_cli.errors import UserError

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    try:
        epoch = VARIANTS[name](dataset, load(dataset))
    except (UserError, ImportError) as error:
        sys.exit(f"{name} on {dataset}: {error}")
    for _ in range(WARM_UP_EPOCHS):
        epoch()
    print("ready", flush=True)
    clock = time.process_time if threads == 1 else time.perf_counter
    for _ in sys.stdin:
        taken = [seconds_of(epoch, clock)]
        while sum(taken) < TURN:
            taken.append(seconds_of(epoch, clock))
        print(statistics.median(taken), flush=True)


def seconds_of(epoch: Callable[[], object], clock: Callable[[], float]) -> float:
    started = clock()
    epoch()
    return clock() - started


if __name__ == "__main__":
    main()
