"""Tables of text before they are drawn, the same for every format; here: on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

RUN = "run"  # the header of the column with places


@dataclass(frozen=True)
class Grid:
    """A table of text; a cell may have several lines. The first `labels` columns are words."""

    header: list[str]
    rows: list[list[str]]
    labels: int = 1
    # Where cells get a second line on a terminal that is too narrow; empty: nowhere.
    break_at: str = ""

    def is_words(self, position: int) -> bool:
        return position < self.labels or self.header[position] == RUN


def print_grid(grid: Grid, console: Console, style: Callable[[str], str] = lambda cell: "") -> None:
    table = _table(grid, style)
    if grid.break_at and _width(table, console) > console.width:
        broken = f"\n{grid.break_at.lstrip()}"
        rows = [[cell.replace(grid.break_at, broken) for cell in row] for row in grid.rows]
        table = _table(replace(grid, rows=rows), style, narrow=True)
    # Rather long lines than numbers cut in two.
    width, console.width = console.width, max(console.width, _width(table, console))
    console.print(table)
    console.width = width


def _table(grid: Grid, style: Callable[[str], str], narrow: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=narrow)
    for position, title in enumerate(grid.header):
        words = grid.is_words(position)
        table.add_column(title, justify="left" if words else "right", no_wrap=position >= 1)
    for row in grid.rows:
        table.add_row(*[Text(cell, style=style(cell)) for cell in row])
    return table


def _width(table: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=10_000), table).maximum
