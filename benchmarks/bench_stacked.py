"""What stacking the folds of a run as one union could gain at most.

Ten copies of a dataset are trained as one union with one set of weights, in turns with a single
copy. Folds would each have weights of their own, which costs more, so the ratio is a bound.

    LPGNN_DATA=<folder with MUTAG.zip> python benchmarks/bench_stacked.py [--copies 5 10]
"""

from __future__ import annotations

import argparse
import statistics
import time

from lpgnn_cli.tuning import tune_process

tune_process()

import torch  # noqa: E402

from lpgnn_cli.config.compose import compose  # noqa: E402
from lpgnn_cli.data.batch import GraphBatch  # noqa: E402
from lpgnn_cli.data.part import Part  # noqa: E402
from lpgnn_cli.model.network import DataShape  # noqa: E402
from lpgnn_cli.propagation import build_propagation  # noqa: E402
from lpgnn_cli.training.epoch import train_epoch  # noqa: E402
from performance_page import store  # noqa: E402
from rivals import Epoch, load  # noqa: E402

WARM_UP_EPOCHS = 3
# Seconds of a turn.
TURN = 0.15
CASES = {
    "shipped recipe": ["layers=1"],
    "shipped recipe, K = 3": ["layers=3"],
    "all graphs at once": ["layers=1", "aggregator=sum", "g=squared", "optim.batch_graphs=null"],
    "GIN, batches of 32": ["propagation=layers", "aggregator=gin"],
}
NOTE = """\
CPU milliseconds per epoch and fold, one thread: one copy of a dataset, and several as one union
with one set of weights, whose batches are as much larger; the median of turns. Folds stacked as
one union would have weights of their own, so the ratio is the most that training could gain."""


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--datasets", nargs="+", default=["mutag", "ptc"])
    words.add_argument("--copies", nargs="+", type=int, default=[5, 10])
    words.add_argument("--turns", type=int, default=9)
    asked = words.parse_args()
    torch.set_num_threads(1)
    columns = ["dataset", "settings", "copies", "ms of one", "ms stacked", "ratio"]
    for dataset in asked.datasets:
        batch = load(dataset)
        for name, settings in CASES.items():
            for copies in asked.copies:
                one, many = (
                    training(dataset, settings, batch, 1),
                    training(dataset, settings, batch, copies),
                )
                turns = [(seconds(one), seconds(many) / copies) for _ in range(asked.turns)]
                alone, stacked = (1e3 * statistics.median(t) for t in zip(*turns, strict=True))
                row = [dataset, name, str(copies), f"{alone:.2f}", f"{stacked:.2f}"]
                row.append(f"{alone / stacked:.2f}")
                print(*row, flush=True)
                table = {"note": NOTE, "columns": columns, "rows": [row]}
                store("Folds stacked as one union, a bound", table, key=3)


def training(dataset: str, settings: list[str], batch: GraphBatch, copies: int) -> Epoch:
    """An epoch of so many copies as one union."""
    config = compose("train", [f"dataset={dataset}", "tracking=none", *settings])
    union = GraphBatch.union([batch] * copies) if copies > 1 else batch
    sets = {"train": union}
    propagation = build_propagation(config, DataShape.of(union), sets, like=union.features)
    propagation.take_statistics(union)
    part, order = Part(union), torch.Generator().manual_seed(0)
    size = config.optim.batch_graphs and copies * config.optim.batch_graphs

    def epoch() -> object:
        return train_epoch(propagation, 1, part, size, order)

    for _ in range(WARM_UP_EPOCHS):
        epoch()
    return epoch


def seconds(epoch: Epoch) -> float:
    """CPU seconds of an epoch, of as many as a turn holds."""
    started, done = time.process_time(), 0
    while time.process_time() - started < TURN:
        epoch()
        done += 1
    return (time.process_time() - started) / done


if __name__ == "__main__":
    main()
