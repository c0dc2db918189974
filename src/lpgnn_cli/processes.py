"""Worker processes of this machine: one for each task, so that a crash ends that task alone.

They come from a fork server that has imported what is slow to import once, or, where each is to
have an environment of its own, from new interpreters. A worker may send messages while it works;
what its task returns is the last one, and a worker that ends without it is lost.

Every worker holds the end of a pipe whose other end the pool has: when the process of the pool
dies, however it dies, the pipe breaks, and the worker gets SIGTERM, as it does when the pool is
interrupted. What a task does about SIGTERM (to save and to return early) is its own affair; it may
get it more than once, as one that comes while its process is still starting is lost.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Generic, TypeVar

from lpgnn_cli import signals

FORK_SERVER = "lpgnn_cli.fork_server"
# What it imports for those that train the units of a run; what is not installed is passed over.
UNIT_MODULES = ("lpgnn_cli.training.execute", "lpgnn_cli.ops.arc_kernels")
# Seconds between two requests to end.
AGAIN = 0.5
# Seconds that workers have to save when the pool is left before they are done.
GRACE = 60.0
_MESSAGE, _RESULT = range(2)

Slot = TypeVar("Slot")
Send = Callable[[Any], None]


@dataclass(frozen=True)
class Said:
    """A message of a worker that goes on."""

    task: int
    message: Any


@dataclass(frozen=True)
class Returned:
    """The end of a task: what it returned."""

    task: int
    result: Any


@dataclass(frozen=True)
class Lost:
    """The end of a process that did not return anything."""

    task: int
    exitcode: int | None


Event = Said | Returned | Lost


@dataclass
class _Worker(Generic[Slot]):
    task: int
    slot: Slot
    process: BaseProcess


class ProcessPool(Generic[Slot]):
    """At most one process per slot; leaving it ends those that still run."""

    def __init__(
        self,
        slots: Sequence[Slot],
        preload: Sequence[str] = (),
        *,
        new_interpreters: bool = False,
    ) -> None:
        """`preload` names the modules that the fork server imports for all workers."""
        self._context: ForkServerContext | SpawnContext
        if new_interpreters:
            self._context = multiprocessing.get_context("spawn")
        else:
            self._context = _fork_server_context(preload)
        self._free = list(slots)
        self._running: dict[Connection, _Worker[Slot]] = {}
        self._lifeline, self._held = self._context.Pipe(duplex=False)

    def __enter__(self) -> ProcessPool[Slot]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._end()
        finally:
            self._held.close()
            self._lifeline.close()

    @property
    def next_slot(self) -> Slot:
        """The one that the next task gets."""
        return self._free[0]

    @property
    def has_room(self) -> bool:
        return bool(self._free)

    @property
    def is_busy(self) -> bool:
        return bool(self._running)

    def start(self, task: int, work: Callable[[Send], Any]) -> None:
        """Run `work` in a process; it is given a function that sends messages."""
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work, args=(work, sender, self._lifeline, dict(os.environ))
        )
        # First, and not as part of what follows: its start unblocks signals.
        multiprocessing.resource_tracker.ensure_running()
        if isinstance(self._context, ForkServerContext):
            _ensure_fork_server()
            process.start()
        else:
            with signals.blocked():
                process.start()
        sender.close()
        self._running[receiver] = _Worker(task, self._free.pop(0), process)

    def events(self, timeout: float) -> Iterator[Event]:
        """What has happened by now, or happens within `timeout` seconds."""
        for receiver in wait(list(self._running), timeout):
            assert isinstance(receiver, Connection)
            worker = self._running[receiver]
            try:
                kind, content = receiver.recv()
            except (EOFError, OSError):  # an OSError: killed in the midst of a message
                self._release(receiver)
                yield Lost(worker.task, worker.process.exitcode)
                continue
            if kind == _MESSAGE:
                yield Said(worker.task, content)
            else:
                self._release(receiver)
                yield Returned(worker.task, content)

    def interrupt(self) -> None:
        """SIGTERM to all that run."""
        for worker in self._running.values():
            worker.process.terminate()

    def _release(self, receiver: Connection) -> None:
        worker = self._running.pop(receiver)
        worker.process.join()
        receiver.close()
        self._free.append(worker.slot)

    def _end(self) -> None:
        """Let workers save what they have; a second Ctrl-C ends them at once."""
        processes = [worker.process for worker in self._running.values()]
        try:
            deadline = time.monotonic() + GRACE
            while any(process.is_alive() for process in processes):
                if time.monotonic() > deadline:
                    break
                self.interrupt()
                wait([process.sentinel for process in processes if process.is_alive()], AGAIN)
        finally:
            for process in processes:
                if process.is_alive():
                    process.kill()
                    process.join()


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_fork_server(preload: Sequence[str]) -> None:
    """Have it import these while this process does something else, ahead of a pool."""
    _fork_server_context(preload)
    multiprocessing.resource_tracker.ensure_running()
    _ensure_fork_server()


def _fork_server_context(preload: Sequence[str]) -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([FORK_SERVER, *preload])
    return context


def _ensure_fork_server() -> None:
    with signals.blocked():  # which would have a new interpreter print a traceback
        multiprocessing.forkserver.ensure_running()


def _work(
    work: Callable[[Send], Any],
    sender: Connection,
    lifeline: Connection,
    environment: Mapping[str, str],
) -> None:
    """A worker: one task, its messages and its result sent to the pool."""
    # A fork server still has the environment in which it was started, maybe for another pool.
    os.environ.clear()
    os.environ.update(environment)
    # A terminal sends Ctrl-C to all processes; that of the pool alone decides what it means.
    signals.ignore((signal.SIGINT, signal.SIGHUP))
    signals.unblock()
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()

    def send(kind: int, content: Any) -> None:
        with suppress(OSError):  # the pool is gone, and SIGTERM is on its way
            sender.send((kind, content))

    send(_RESULT, work(lambda message: send(_MESSAGE, message)))


def _watch(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)
