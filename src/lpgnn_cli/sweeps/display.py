"""The sweep for people: live while it runs, and a closing table."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lpgnn_cli.formatting import count, duration, one_line
from lpgnn_cli.reporting.text import is_screen, write_plain
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED, INTERRUPTED, RUNNING
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.jobs import PENDING, PRUNED
from lpgnn_cli.sweeps.leaderboard import cells_of, command_line, effect_title, effects, header_of
from lpgnn_cli.sweeps.nested import choices_table, choose, figure_text

POLL_SECONDS = 0.5
ENDED = (FINISHED, FAILED, DIVERGED, PRUNED)
SHOWN_BEST, SHOWN_RUNNING, SHOWN_ROWS, SHOWN_FAILURES = 5, 8, 20, 20


class Monitor:
    """Watches the folders from a thread of its own, whatever runs the jobs."""

    def __init__(self, board: Board, axes: Sequence[str], console: Console) -> None:
        self.board = board
        self.axes = axes
        self.console = console
        self.started = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._live: Live | None = None
        self._told: set[str] = set()

    def start(self) -> None:
        if self._thread is not None:
            return
        if is_screen(self.console):
            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._show()
        if self._live is not None:
            self._live.stop()

    def _watch(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self._show()

    def _show(self) -> None:
        self.board.refresh()
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)
            return
        for view in self.board.of_state(*ENDED):
            if not view.found and view.job.key not in self._told:
                self._told.add(view.job.key)
                write_plain(self.console, self._line(view))

    def _line(self, view: View) -> str:
        value = self.board.text(self.board.value(view))
        what = value if view.state == FINISHED else one_line(view.reason)
        return f"job {view.job.number}: {view.state} {what}  {view.job.title}  [{self._count()}]"

    def _count(self) -> str:
        board = self.board
        done = len(board.of_state(FINISHED))
        parts = [f"{done} of {board.expected} done"]
        for state, word in ((RUNNING, "running"), (INTERRUPTED, "interrupted"), (PRUNED, "pruned")):
            if found := board.of_state(state):
                parts.append(f"{len(found)} {word}")
        if bad := board.of_state(FAILED, DIVERGED):
            parts.append(f"{len(bad)} failed")
        best = board.best()
        if best is not None:
            parts.append(f"best {board.text(board.value(best))}")
        left = self._left()
        if left:
            parts.append(f"ETA {duration(left)}")
        return ", ".join(parts)

    def _left(self) -> float:
        """Seconds until the end, if jobs go on ending as they have so far; 0 if unknown."""
        ended = self.board.of_state(*ENDED)
        own = sum(not view.found for view in ended)
        elapsed = time.monotonic() - self.started
        return elapsed / own * (self.board.expected - len(ended)) if own else 0.0

    def _picture(self) -> RenderableType:
        board = self.board
        ended = len(board.of_state(*ENDED))
        head = Table.grid(padding=(0, 2))
        elapsed = time.monotonic() - self.started
        bar = ProgressBar(total=max(1, board.expected), completed=ended, width=30)
        head.add_row(bar, Text(self._count()), Text(duration(elapsed), style="dim"))
        parts: list[RenderableType] = [head]
        for rank, view in enumerate(board.ranked()[:SHOWN_BEST], 1):
            value = board.text(board.value(view))
            parts.append(Text(f"  {rank}. {value:>8}  {view.job.title}", no_wrap=True))
        for view in board.of_state(RUNNING)[:SHOWN_RUNNING]:
            since = duration(max(0.0, time.time() - view.started))
            parts.append(Text(f"  … {since:>8}  {view.job.title}", style="dim", no_wrap=True))
        for view in board.of_state(FAILED, DIVERGED)[-3:]:
            line = f"  ✗ {view.job.title}: {one_line(view.reason)}"
            parts.append(Text(line, style="red", no_wrap=True))
        return Group(*parts)


def show_plan(board: Board, console: Console, costs: Sequence[str], total: str) -> None:
    """The table of `sweep.dry_run=true`."""
    rows = [
        [str(v.job.number), v.job.title, _plan_word(v), cost]
        for v, cost in zip(board.views.values(), costs, strict=True)
    ]
    _print_table(console, ["job", "settings", "state", "estimate"], rows)
    write_plain(console, f"\n{total}")


def show_status(board: Board, console: Console, queued: Mapping[str, str]) -> None:
    """How many jobs are in which state, and those that have not ended."""
    views = list(board.views.values())
    words = {v.job.key: "queued" if v.job.key in queued else v.state for v in views}
    words |= {v.job.key: v.state for v in views if v.state not in (PENDING, INTERRUPTED)}
    rows = [
        [str(v.job.number), v.job.title, words[v.job.key], queued.get(v.job.key, "")]
        for v in views
        if v.state not in ENDED
    ]
    if rows:
        _print_table(console, ["job", "settings", "state", "Slurm"], rows[:SHOWN_ROWS])
        if len(rows) > SHOWN_ROWS:
            write_plain(console, f"({len(rows) - SHOWN_ROWS} more)")
    counts = Counter(words.values())
    write_plain(console, ", ".join(f"{number} {word}" for word, number in counts.items()) + "\n")


def _plan_word(view: View) -> str:
    return "to run" if not view.found else view.state


def show_results(board: Board, axes: Sequence[str], console: Console, folder: Path) -> None:
    """The closing table, the effect of each axis, failures, and what to do next."""
    done = board.ranked()
    if done:
        rows = [cells_of(board, v, rank, axes) for rank, v in enumerate(done[:SHOWN_ROWS], 1)]
        _print_table(console, header_of(board, axes), rows)
        if len(done) > SHOWN_ROWS:
            write_plain(console, f"({len(done) - SHOWN_ROWS} more in leaderboard.csv)")
    by_axis = [e for e in effects(board, axes) if not math.isnan(e.mean)]
    if by_axis:
        write_plain(console, f"\neffect of each axis on {effect_title(board)}")
        cells = [
            [e.axis, e.value, str(e.jobs), board.text(e.mean), board.text(e.best)] for e in by_axis
        ]
        _print_table(console, ["axis", "value", "jobs", "mean", "best"], cells)
    if board.outer_folds:
        _show_nested(board, axes, console)
    bad = board.of_state(FAILED, DIVERGED)
    if bad:
        write_plain(console, f"\n{count(len(bad), 'job')} failed")
        cells = [[str(v.job.number), v.job.title, one_line(v.reason)] for v in bad[:SHOWN_FAILURES]]
        _print_table(console, ["job", "settings", "reason"], cells)
    if board.drawn_from:
        some = f"{len(board.candidates())} of {board.drawn_from} combinations"
        which = f"the best of {board.best_of}" if board.best_of else "drawn at random"
        write_plain(console, f"\nsample   {some}, {which}; a larger sweep.sample adds to them")
    write_plain(console, f"\nsweep    {folder}")
    best = board.best()
    if best is not None:
        write_plain(console, f"best     {command_line(best.job)}")


def _show_nested(board: Board, axes: Sequence[str], console: Console) -> None:
    """What every outer fold has chosen, and the figure of all of them."""
    folds, judge = choose(board), board.judge()
    if not folds:
        return
    write_plain(
        console, f"\nchoice of each outer fold, and its {judge.title} on the test part from zero"
    )
    _print_table(console, *choices_table(folds, judge, axes))
    if text := figure_text(folds, judge):
        write_plain(console, f"\nnested   {text}")


def _print_table(console: Console, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if is_screen(console):
        table = Table(box=box.SIMPLE_HEAD)
        for name in header:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
        return
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        write_plain(console, "  ".join(cells).rstrip())
