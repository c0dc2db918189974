"""`lpgnn train dataset=mutag`, ten folds, as a user runs it: where its seconds go.

    python benchmarks/bench_command.py [--turns N]
    python benchmarks/bench_command.py --before CHECKOUT [--turns N]

Runs take turns, each in a folder of its own whose store a short run has made. With --before, the
source tree of an earlier version in CHECKOUT takes turns with this one, run by the same Python:
with the recipe that each has, and with the same settings, those of the recipe of 0.1.0.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from performance_page import commit, store
from recipe_then import recipe_then
from whole_command import Spent, run_lpgnn

COMMAND = ["train", "dataset=mutag", "quiet=true"]
CASES = {
    "as shipped": [],
    "tracking=none": ["tracking=none"],
    "one epoch": ["epochs=1"],
    "one epoch, tracking=none": ["epochs=1", "tracking=none"],
}
NOTE = """\
Seconds of `lpgnn train dataset=mutag`, ten folds on all cores, all processes, the median of {turns}
turns. One epoch: all that is not training."""
NOTE_BEFORE = """\
The same command of an earlier version ({before}) in turns with this one, the median of {turns}
turns: with the recipe that each has (400 epochs then, 100 now), and with the settings of the
recipe of then."""


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--turns", type=int, default=3)
    words.add_argument("--before", type=Path, help="the checkout of an earlier version")
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        if asked.before is None:
            measure_cases(runs, asked.turns)
        else:
            compare(runs, asked.before.absolute(), asked.turns)


def measure_cases(runs: Path, turns: int) -> None:
    run("now", ["epochs=1"], runs)
    spent: dict[str, list[Spent]] = {name: [] for name in CASES}
    for _ in range(turns):
        for name, more in CASES.items():
            spent[name].append(run("now", more, runs))
    rows = [[name, *map(seconds, middle(turn))] for name, turn in spent.items()]
    table = {"note": NOTE.format(turns=turns), "columns": ["what", "wall", "CPU"], "rows": rows}
    store("The whole command", table)


def compare(runs: Path, before: Path, turns: int) -> None:
    cases = {
        "own recipes": ([], []),
        "own recipes, tracking=none": (["tracking=none"], ["tracking=none"]),
        "equal settings": ([], recipe_then("mutag")),
    }
    run("before", ["epochs=1"], runs, before)
    run("now", ["epochs=1"], runs)
    columns = ["settings", "wall before", "CPU before", "wall", "CPU", "÷ wall", "÷ CPU"]
    note = NOTE_BEFORE.format(before=commit(before), turns=turns)
    for name, (then, now) in cases.items():
        pairs = [(run("before", then, runs, before), run("now", now, runs)) for _ in range(turns)]
        old, new = (middle(list(side)) for side in zip(*pairs, strict=True))
        ratios = [f"{old.wall / new.wall:.2f}", f"{old.cpu / new.cpu:.2f}"]
        row = [name, *map(seconds, old), *map(seconds, new), *ratios]
        table = {"note": note, "columns": columns, "rows": [row]}
        store("The whole command, before and after", table, key=1)


def run(version: str, more: list[str], runs: Path, checkout: Path | None = None) -> Spent:
    spent = run_lpgnn([*COMMAND, *more], {"LPGNN_RUNS": str(runs / version)}, checkout)
    print(f"{version}: {' '.join(more)} {spent.wall:.1f} s, CPU {spent.cpu:.1f} s", flush=True)
    return spent


def middle(turns: list[Spent]) -> Spent:
    return Spent(*(statistics.median(times) for times in zip(*turns, strict=True)))


def seconds(value: float) -> str:
    return f"{value:.1f}"


if __name__ == "__main__":
    main()
