"""One training epoch: lpgnn's step against the plain formulation of the same step.

Three child processes, each with its own model on the same data, take turns epoch by epoch: the
plain formulation as its users run it, the same with lpgnn's allocator settings, and lpgnn as its
users run it. What disturbs the machine disturbs all three; the medians and their ratios are
printed. K = 1, sum, G squared, gradient updates, one thread.

    LPGNN_DATA=<folder with IMDB-BINARY.zip> python benchmarks/bench_epoch.py [--epochs 15]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

STATE = HIDDEN = READOUT = 50
VARIANTS = ("plain", "plain, tuned allocator", "lpgnn")
WARM_UP_EPOCHS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["mutag", "imdb_b"])
    parser.add_argument("--epochs", type=int, default=15, help="timed epochs of each variant")
    parser.add_argument("--child", choices=VARIANTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(arguments.child, arguments.datasets[0])
        return

    table = Table(title=f"One training epoch in ms, state {STATE}, hidden {HIDDEN}, one thread")
    table.add_column("dataset")
    for heading in ("nodes", "arcs", *VARIANTS, "plain / lpgnn"):
        table.add_column(heading, justify="right")
    for dataset in arguments.datasets:
        try:
            size, seconds = compare(dataset, arguments.epochs)
        except EOFError:
            table.add_row(dataset, *["-"] * (len(VARIANTS) + 3))
            continue
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        ratio = medians["plain"] / medians["lpgnn"]
        milliseconds = [f"{1e3 * medians[name]:.1f}" for name in VARIANTS]
        table.add_row(dataset, *size, *milliseconds, f"{ratio:.2f}")
    Console().print(table)


def compare(dataset: str, epochs: int) -> tuple[list[str], dict[str, list[float]]]:
    """The size of the dataset, and the seconds of every timed epoch by variant."""
    children = {name: start_child(name, dataset) for name in VARIANTS}
    try:
        sizes = [ask(child) for child in children.values()]
        seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
        for _ in range(epochs):
            for name, child in children.items():
                assert child.stdin is not None
                child.stdin.write("epoch\n")
                child.stdin.flush()
                seconds[name].append(float(ask(child)[0]))
        return sizes[0], seconds
    finally:
        for child in children.values():
            child.communicate()


def start_child(name: str, dataset: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, "--child", name, "--datasets", dataset],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    )


def ask(child: subprocess.Popen[str]) -> list[str]:
    assert child.stdout is not None
    answer = child.stdout.readline().split()
    if not answer:
        raise EOFError("a child process ended early; it said why on stderr")
    return answer


def run_child(name: str, dataset: str) -> None:
    """Train one epoch for every line that comes in, and answer with its seconds."""
    if name != "plain":
        from lpgnn_cli.allocator import tune_allocator

        tune_allocator()
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    from lpgnn_cli.errors import UserError

    try:
        epoch, nodes, arcs = build_epoch(name, dataset)
    except UserError as error:
        sys.exit(f"{dataset}: {error}")
    for _ in range(WARM_UP_EPOCHS):
        epoch()
    print(nodes, arcs, flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        epoch()
        print(time.perf_counter() - started, flush=True)


def build_epoch(name: str, dataset: str) -> tuple[Callable[[], object], int, int]:
    """A function that trains one epoch on all graphs of the dataset, and the size of the data."""
    from lpgnn_cli.config.compose import compose
    from lpgnn_cli.data import load_dataset
    from lpgnn_cli.data.part import Part
    from lpgnn_cli.model.network import DataShape
    from lpgnn_cli.propagation import build_propagation
    from lpgnn_cli.training.epoch import train_epoch
    from lpgnn_cli.training.evaluation import to_floats

    config = compose("train", overrides(dataset))
    batch = load_dataset(config.dataset, config.data.root, seed=0).batch
    if name == "lpgnn":
        sets = {"train": batch}
        lpgnn = build_propagation(config, DataShape.of(batch), sets, like=batch.features)
        part = Part(batch)
        return lambda: to_floats(train_epoch(lpgnn, 1, part)), batch.num_nodes, batch.num_arcs

    sys.path.insert(0, str(Path(__file__).parent))
    from plain import LearningRates, PlainLagrangian

    rates = LearningRates(config.lr.theta, config.lr.state, config.lr.state)
    plain = PlainLagrangian(batch, state=STATE, hidden=HIDDEN, readout=READOUT, lr=rates)
    return plain.train_epoch, batch.num_nodes, batch.num_arcs


def overrides(dataset: str) -> list[str]:
    """The settings of lpgnn that the plain formulation implements."""
    return [
        f"dataset={dataset}",
        "recipe=none",
        "aggregator=sum",
        "g=squared",
        "propagation=lagrangian",
        f"state=[{STATE}]",
        f"aggregator.hidden=[{HIDDEN}]",
        f"readout.hidden=[{READOUT}]",
        "tracking=none",
    ]


if __name__ == "__main__":
    main()
