"""Worker processes of this machine: one for each job, so that a crash ends that job and no other.

On CPUs they come from a fork server that has imported torch once. For GPUs they are interpreters of
their own, which see their device alone from before torch is imported.

Every worker holds the end of a pipe whose other end the sweep has: when the sweep dies, however it
dies, the pipe breaks, and the worker saves its checkpoint and ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

# What the fork server imports, once for all jobs; every optimiser imports torch._dynamo.
PRELOADED = ["lpgnn_cli.sweep.function", "torch._dynamo"]
VISIBLE = "CUDA_VISIBLE_DEVICES"
# Seconds that workers have to save when the sweep is stopped.
GRACE = 60.0


@dataclass(frozen=True)
class Died:
    """A worker that ended without a result."""

    reason: str


def run_in_pool(
    tasks: Iterable[Callable[[], Any]],
    slots: Sequence[str | None],
    done: Callable[[int, Any], None],
    stopping: Callable[[], bool],
) -> None:
    """Run every task in a process of its own, at most one a slot; a slot may name a GPU.

    A task is taken from `tasks` when there is a slot for it. `done` is told the position of each
    with its result, or `Died`; once `stopping` says so, no further task is started.
    """
    context: Any
    if any(slots):
        context = multiprocessing.get_context("spawn")
    else:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
    lifeline, held = context.Pipe(duplex=False)
    waiting = enumerate(tasks)
    upcoming = next(waiting, None)
    free = list(slots)
    running: dict[int, tuple[BaseProcess, Connection, int, str | None]] = {}
    try:
        while (upcoming and not stopping()) or running:
            while upcoming and free and not stopping():
                position, task = upcoming
                slot = free.pop(0)
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(task, sender, lifeline))
                with _visible(slot):
                    process.start()
                sender.close()
                running[process.sentinel] = (process, receiver, position, slot)
                upcoming = next(waiting, None)
            for sentinel in wait(list(running), timeout=1.0):
                assert isinstance(sentinel, int)
                process, receiver, position, slot = running.pop(sentinel)
                process.join()
                free.append(slot)
                done(position, _result(process, receiver))
    finally:
        _end([process for process, *_ in running.values()])
        held.close()


def _result(process: BaseProcess, receiver: Connection) -> Any:
    try:
        return receiver.recv()
    except EOFError:
        return Died(describe_death(process.exitcode))
    finally:
        receiver.close()


def describe_death(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{hint}"
    return f"its process ended with code {exitcode}"


def _work(task: Callable[[], Any], sender: Connection, lifeline: Connection) -> None:
    """A worker: one task, its result sent to the sweep."""
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()
    try:
        result = task()
    except KeyboardInterrupt:
        return
    with suppress(BrokenPipeError):  # the sweep is gone; the folder has everything
        sender.send(result)


def _watch(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)


def _end(processes: Sequence[BaseProcess]) -> None:
    """Let workers save what they have; a second Ctrl-C ends them at once."""
    try:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + GRACE
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()


@contextmanager
def _visible(device: str | None) -> Iterator[None]:
    """A process that is started now sees this GPU alone."""
    if device is None:
        yield
        return
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = device
    try:
        yield
    finally:
        if before is None:
            del os.environ[VISIBLE]
        else:
            os.environ[VISIBLE] = before
