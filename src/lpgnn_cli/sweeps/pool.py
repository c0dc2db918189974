"""The jobs of a sweep, each in a worker process of its own, with slots for GPUs.

On CPUs the workers come from a fork server. For GPUs they are interpreters of their own, which see
their device alone from before torch is imported.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from lpgnn_cli.processes import Lost, ProcessPool, Returned, Send

# What the fork server imports, once for all jobs; what is not installed is passed over.
PRELOADED = ["lpgnn_cli.sweeps.function", "lpgnn_cli.ops.arc_kernels"]
VISIBLE = "CUDA_VISIBLE_DEVICES"


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
    """Run every task in a process of its own, at most one per slot; a slot may name a GPU.

    A task is taken from `tasks` when there is a slot for it. `done` is told the position of each
    with its result, or `Died`; once `stopping` says so, no further task is started.
    """
    waiting = enumerate(tasks)
    upcoming = next(waiting, None)
    with ProcessPool(slots, PRELOADED, new_interpreters=any(slots)) as pool:
        while (upcoming and not stopping()) or pool.is_busy:
            while upcoming and pool.has_room and not stopping():
                position, task = upcoming
                with _visible(pool.next_slot):
                    pool.start(position, partial(_silently, task))
                upcoming = next(waiting, None)
            for event in pool.events(timeout=1.0):
                if isinstance(event, Returned):
                    done(event.task, event.result)
                elif isinstance(event, Lost):
                    done(event.task, Died(describe_death(event.exitcode)))


def _silently(task: Callable[[], Any], send: Send) -> Any:
    return task()


def describe_death(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        hint = " (out of memory?)" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{hint}"
    return f"its process ended with code {exitcode}"


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
