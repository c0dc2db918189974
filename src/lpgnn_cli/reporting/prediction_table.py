"""What `lpgnn predict` ends with: how many items of each class, and how the states were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from lpgnn_cli.formatting import count, per_cent
from lpgnn_cli.metrics import CONVERGED, STEPS
from lpgnn_cli.reporting.prediction_files import Columns
from lpgnn_cli.reporting.text import is_screen
from lpgnn_cli.screen import printable


@dataclass
class Tally:
    """Counts of all that was predicted so far."""

    level: str
    classes: Sequence[int]
    items: int = 0
    of_class: dict[int, int] = field(default_factory=dict)
    probability: dict[int, float] = field(default_factory=dict)
    # Graphs times networks whose states settled; the most steps that any took.
    settled: float = 0.0
    solved: int = 0
    steps: int = 0

    def add(
        self, columns: Columns, inference: Mapping[str, Mapping[str, float]], graphs: int
    ) -> None:
        self.items += len(columns["item"])
        if "class" in columns:
            self._count(columns["class"], columns["probability"])
        for found in inference.values():
            if CONVERGED.name in found:
                self.settled += found[CONVERGED.name] * graphs
                self.solved += graphs
                self.steps = max(self.steps, int(found[STEPS.name]))

    def _count(self, classes: NDArray[Any], probability: NDArray[Any]) -> None:
        for value in np.unique(classes).tolist():
            chosen = classes == value
            self.of_class[value] = self.of_class.get(value, 0) + int(chosen.sum())
            total = self.probability.get(value, 0.0) + float(probability[chosen].sum())
            self.probability[value] = total


def prediction_table(console: Console, tally: Tally, networks: int, files: Sequence[str]) -> None:
    asked = f"{tally.items:,} {tally.level}{'' if tally.items == 1 else 's'}"
    console.print(f"{asked}, asked of {count(networks, 'network')}")
    if tally.of_class:
        table = Table(box=box.SIMPLE if is_screen(console) else None, pad_edge=False)
        for title in ("class", f"{tally.level}s", "share", "mean probability"):
            table.add_column(title, justify="right")
        for value in tally.classes:
            found = tally.of_class.get(value, 0)
            mean = tally.probability[value] / found if found else float("nan")
            table.add_row(str(value), f"{found:,}", per_cent(found / tally.items), per_cent(mean))
        console.print(table)
    if tally.solved:
        share = per_cent(tally.settled / tally.solved)
        console.print(f"states settled: {share} of graphs, in at most {tally.steps} steps")
    console.print(f"written to {printable(' and '.join(files))}", soft_wrap=True)
