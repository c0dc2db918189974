"""Progress of a run: a live display on a terminal, plain lines elsewhere, nothing if quiet.

An epoch can take a millisecond, so `epoch_done` only keeps what it is told. The live display reads
it a few times per second from rich's own thread; the plain one writes a line when one is due.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lpgnn_cli.formatting import compact, count, duration, metric_text, one_line
from lpgnn_cli.metrics import LOSS, TEST, TRAIN, VIOLATION_MEAN, leading_on
from lpgnn_cli.reporting.text import describe, is_screen, write_plain
from lpgnn_cli.runfolder import FINISHED, RunFolder, Unit, UnitResult
from lpgnn_cli.training.observer import Observer

REFRESHES_PER_SECOND = 4
# A line every 3 s at first; long runs slow down to one every 30 s, to keep their logs readable.
PLAIN_SECONDS = (3.0, 30.0)
SHOWN_UNITS = 16
SHOWN_TROUBLES = 5

Clock = Callable[[], float]
NOTHING: Mapping[str, float] = {}


@dataclass
class Tracker:
    """Where all units are."""

    epochs: int
    units: Sequence[str]
    clock: Clock
    started: float
    latest: dict[str, tuple[int, Mapping[str, float]]] = field(default_factory=dict)
    ended: dict[str, UnitResult] = field(default_factory=dict)
    resumed_epochs: int = 0
    first_epoch_at: float | None = None

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
        if unit not in self.latest:
            # A resumed unit starts late: what it brings along was not computed now.
            self.resumed_epochs += epoch - 1
            if self.first_epoch_at is None:
                self.first_epoch_at = self.clock()
        self.latest[unit] = (epoch, metrics)

    def running(self) -> dict[str, tuple[int, Mapping[str, float]]]:
        return {u: at for u, at in self.latest.copy().items() if u not in self.ended}

    def troubles(self) -> list[str]:
        """What happened to the units that ended otherwise than finished."""
        return [trouble(r) for r in self.ended.copy().values() if r.state != FINISHED]

    def elapsed(self) -> float:
        return self.clock() - self.started

    def epochs_done(self) -> int:
        """Epochs of all units; a unit that has ended has no more to do."""
        running = sum(epoch for epoch, _ in self.running().values())
        return running + len(self.ended) * self.epochs

    def epochs_total(self) -> int:
        return self.epochs * len(self.units)

    def remaining(self) -> float | None:
        """Seconds to go, at the rate since the first epoch; None while that is unknown."""
        if self.first_epoch_at is None:
            return None
        spent = self.clock() - self.first_epoch_at
        computed = sum(epoch for epoch, _ in self.latest.copy().values()) - self.resumed_epochs
        # The first epoch of each unit began before its report, so it tells nothing of the rate.
        computed -= len(self.latest)
        if spent <= 0 or computed <= 0:
            return None
        return (self.epochs_total() - self.epochs_done()) * spent / computed

    def times(self) -> str:
        seconds = self.remaining()
        elapsed = f"elapsed {duration(self.elapsed())}"
        return elapsed if not seconds else f"{elapsed}, ETA {duration(seconds)}"


class QuietProgress:
    """Shows nothing."""

    def run_started(self, run: RunFolder, units: Sequence[Unit], epochs: int) -> None: ...

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None: ...

    def unit_ended(self, unit: str, result: UnitResult) -> None: ...

    def run_ended(self, run: RunFolder, summary: Mapping[str, Any]) -> None: ...


class LiveProgress:
    """Bars over units and epochs, redrawn in place."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._title = ""
        self._tracker = Tracker(0, [], clock, clock())
        self._live: Live | None = None

    def run_started(self, run: RunFolder, units: Sequence[Unit], epochs: int) -> None:
        self._title = describe(run)
        self._tracker = Tracker(epochs, [u.name for u in units], self._clock, self._clock())
        self._live = Live(
            console=self._console,
            get_renderable=self._picture,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
        )
        # If nobody says that the run has ended (Ctrl-C), the display still ends in order.
        atexit.register(self.close)
        self._live.start()
        # Rich hides the cursor; shown, it needs no restoring, not even after a kill.
        self._console.show_cursor(True)

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
        self._tracker.epoch_done(unit, epoch, metrics)

    def unit_ended(self, unit: str, result: UnitResult) -> None:
        self._tracker.ended[unit] = result

    def run_ended(self, run: RunFolder, summary: Mapping[str, Any]) -> None:
        self.close()

    def close(self) -> None:
        """Takes the display away and gives the terminal back; safe to call again."""
        atexit.unregister(self.close)
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _picture(self) -> RenderableType:
        tracker = self._tracker
        running = tracker.running()
        layers = max((len(violations(m)) for _, m in running.values()), default=0)
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, min_width=8)
        for _ in range(4):
            grid.add_column(justify="right", no_wrap=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.expand = True
        heading = "violation per layer" if layers > 1 else "violation" if layers else ""
        grid.add_row("", "", "epoch", "loss", "train", "test", heading, style="dim")
        for name, (epoch, metrics) in list(running.items())[:SHOWN_UNITS]:
            grid.add_row(
                Text(one_line(name)),
                ProgressBar(total=tracker.epochs, completed=epoch),
                f"{epoch}/{tracker.epochs}",
                *headline(metrics),
                " ".join(compact(v) for v in violations(metrics)),
            )
        if len(running) > SHOWN_UNITS:
            grid.add_row(Text(f"and {len(running) - SHOWN_UNITS} more", style="dim"))
        ended = list(tracker.ended.copy().values())
        grid.add_row(
            Text("all", style="bold"),
            ProgressBar(total=tracker.epochs_total(), completed=tracker.epochs_done()),
            Text(f"{len(ended)}/{len(tracker.units)} units", style="bold"),
            *(Text(value, style="bold") for value in headline(mean_metrics(ended))),
        )
        troubles = tracker.troubles()
        lines = [Text(t, style="bold red") for t in troubles[-SHOWN_TROUBLES:]]
        if len(troubles) > SHOWN_TROUBLES:
            lines.insert(0, Text(f"{len(troubles)} units ended badly, the latest:", style="red"))
        return Group(Text(self._title, style="bold"), Text(tracker.times()), grid, *lines)


class PlainProgress:
    """One plain line every few seconds."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._tracker = Tracker(0, [], clock, clock())
        self._next = 0.0

    def run_started(self, run: RunFolder, units: Sequence[Unit], epochs: int) -> None:
        self._tracker = Tracker(epochs, [u.name for u in units], self._clock, self._clock())
        self._say(f"{describe(run)}: {count(len(units), 'unit')}, {count(epochs, 'epoch')}")

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
        self._tracker.epoch_done(unit, epoch, metrics)
        if self._clock() >= self._next:
            self._say(self._line())

    def unit_ended(self, unit: str, result: UnitResult) -> None:
        self._tracker.ended[unit] = result
        if result.state != FINISHED:
            self._say(trouble(result))
        elif self._clock() >= self._next:
            self._say(self._line())

    def run_ended(self, run: RunFolder, summary: Mapping[str, Any]) -> None:
        self.close()

    def close(self) -> None:
        self._next = float("inf")

    def _say(self, line: str) -> None:
        shortest, longest = PLAIN_SECONDS
        pause = min(longest, max(shortest, self._tracker.elapsed() / 20))
        self._next = self._clock() + pause
        write_plain(self._console, line)

    def _line(self) -> str:
        tracker = self._tracker
        parts = [f"{len(tracker.ended)}/{len(tracker.units)} units", tracker.times()]
        running = tracker.running()
        if running:
            at = [epoch for epoch, _ in running.values()]
            name = one_line(next(iter(running))) if len(running) == 1 else f"{len(running)} units"
            span = f"{min(at)}" if min(at) == max(at) else f"{min(at)}-{max(at)}"
            metrics = average([m for _, m in running.values()])
            loss, train, test = headline(metrics)
            parts.append(f"{name} at epoch {span}/{tracker.epochs}")
            parts += [f"loss {loss}"] if loss else []
            parts += [f"train {train}"] if train else []
            parts += [f"test {test}"] if test else []
            by_layer = [compact(v) for v in violations(metrics)]
            parts += [f"violation {' '.join(by_layer)}"] if by_layer else []
        return ", ".join(parts)


def make_progress(console: Console, quiet: bool) -> Observer:
    """The display that fits where the output goes."""
    if quiet:
        return QuietProgress()
    return LiveProgress(console) if is_screen(console) else PlainProgress(console)


def trouble(result: UnitResult) -> str:
    reason = f": {one_line(result.reason)}" if result.reason else ""
    return f"{one_line(result.unit)} {result.state} after {count(result.epochs, 'epoch')}{reason}"


def headline(metrics: Mapping[str, float]) -> tuple[str, str, str]:
    """Loss, and accuracy (or what the run is judged by) in training and test; empty if none."""
    metric = leading_on(TRAIN, metrics)
    names = (LOSS.on(TRAIN), metric.on(TRAIN), metric.on(TEST))
    loss, train, test = (metric_text(n, metrics[n]) if n in metrics else "" for n in names)
    return loss, train, test


def violations(metrics: Mapping[str, float]) -> list[float]:
    """Mean violation of each layer on the training part, or over all layers where that is all."""
    names = VIOLATION_MEAN.by_layer(TRAIN, metrics) or [VIOLATION_MEAN.on(TRAIN)]
    return [metrics[name] for name in names if name in metrics]


def mean_metrics(results: Sequence[UnitResult]) -> Mapping[str, float]:
    """The mean over the units that finished, so far."""
    return average([r.metrics for r in results if r.state == FINISHED])


def average(all_metrics: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    if not all_metrics:
        return NOTHING
    common = [n for n in all_metrics[0] if all(n in m for m in all_metrics)]
    return {n: sum(m[n] for m in all_metrics) / len(all_metrics) for n in common}
