"""What asks a command to end: Ctrl-C, SIGTERM of a cluster or `timeout`, SIGHUP of a lost terminal.

The first signal asks to save and to leave; another one, a moment later, ends at once. Whoever stops
a group of processes may reach one of them twice, so what follows at once is the same request.

A signal that raises may come where libraries swallow what is raised, an import above all: so it is
remembered, and whoever listens next finds it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Seconds in which further signals mean the same request.
SAME_REQUEST = 1.0
_TERMINALS = (1, 2)

Handler = Callable[[int, FrameType | None], None]

# The signal that was raised in this process and has not ended anything yet.
_raised: int | None = None


class Interruption(KeyboardInterrupt):
    """A signal that ends a command."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number


def exit_code(interruption: KeyboardInterrupt) -> int:
    """What a shell calls a command that was ended by this signal."""
    return 128 + int(getattr(interruption, "number", signal.SIGINT))


class StopFlag:
    """Raised by the first signal: units then save and end. A later one ends at once.

    Worker processes only ever save and end: who started them decides about anything else.
    """

    def __init__(self) -> None:
        self.raised = False
        self.number: int = signal.SIGINT
        self._since = 0.0

    def __call__(self) -> bool:
        return self.raised

    def handle(self, number: int, frame: FrameType | None) -> None:
        if not self.raised:
            self.raised, self.number, self._since = True, number, time.monotonic()
            leave_lost_terminal(number)
        elif parent_process() is None and time.monotonic() - self._since > SAME_REQUEST:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    @contextmanager
    def listening(self) -> Iterator[StopFlag]:
        """Listen to signals, where this thread may, and to one that was swallowed before."""
        with _handling(self.handle, SIGNALS):
            if _raised is not None and not self.raised:
                self.handle(_raised, None)
            yield self


@contextmanager
def interrupting() -> Iterator[None]:
    """Signals raise an `Interruption` here."""
    global _raised
    before = _raised
    try:
        with _handling(_Raising().handle, SIGNALS):
            yield
    finally:
        _raised = before


def interrupt_from_now() -> None:
    """The same, for the whole of a program."""
    sys.unraisablehook = _mention
    _listen(_Raising().handle, SIGNALS)


def swallowed() -> int | None:
    """The signal that was raised here, though nothing has ended by it."""
    return _raised


def _mention(problem: sys.UnraisableHookArgs) -> None:
    """Python prints what is raised where nobody can catch it; what we raise is remembered."""
    if not issubclass(problem.exc_type, Interruption):
        sys.__unraisablehook__(problem)


class _Raising:
    def __init__(self) -> None:
        self._since = -SAME_REQUEST

    def handle(self, number: int, frame: FrameType | None) -> None:
        global _raised
        if time.monotonic() - self._since > SAME_REQUEST:
            self._since, _raised = time.monotonic(), number
            leave_lost_terminal(number)
            raise Interruption(number)


def ignore(numbers: Sequence[signal.Signals] = SIGNALS) -> None:
    """For processes that others end, in other ways."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def blocked() -> Iterator[None]:
    """Signals wait; processes that are started now have to `unblock`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def leave_lost_terminal(number: int) -> None:
    """After a hang-up, what writes to the terminal would fail: it is written nowhere instead."""
    if number != signal.SIGHUP:
        return
    for descriptor in _TERMINALS:
        try:
            os.write(descriptor, b"")
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


@contextmanager
def _handling(handle: Handler, numbers: Sequence[signal.Signals]) -> Iterator[None]:
    before = _listen(handle, numbers)
    try:
        yield
    finally:
        # A worker that was told to end may be told so again until its process is gone.
        if parent_process() is None:
            for number, handler in before:
                signal.signal(number, handler)


def _listen(handle: Handler, numbers: Sequence[signal.Signals]) -> list[tuple[signal.Signals, Any]]:
    """The handlers that there were before."""
    before: list[tuple[signal.Signals, Any]] = []
    with suppress(ValueError):  # not the main thread: somebody else listens
        for number in numbers:
            # `nohup`, and a worker's parent, have some of them ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before.append((number, signal.signal(number, handle)))
    return before
