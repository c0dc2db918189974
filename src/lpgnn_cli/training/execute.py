"""Running the units of a run, one after another or side by side in worker processes.

A unit in a process of its own takes nothing with it when it fails. The processes come from a fork
server that has imported torch once, so that one process per unit is cheap, and the dataset reaches
them through shared memory. Results do not depend on how many run at a time.
"""

from __future__ import annotations

import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import FrameType

import torch

from lpgnn_cli.processes import Lost, ProcessPool, Said, Send
from lpgnn_cli.runfolder import DIVERGED, FAILED, INTERRUPTED, Rule, RunFolder, UnitResult
from lpgnn_cli.training.device import cores
from lpgnn_cli.training.fit import UnitFit, UnitTask
from lpgnn_cli.training.observer import Observer

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# What the fork server imports, once for all units; what is not installed is passed over.
PRELOADED = [__name__, "lpgnn_cli.ops.arc_kernels"]


class StopFlag:
    """Set by the first Ctrl-C or SIGTERM: units then save and end. A second one ends at once."""

    def __init__(self) -> None:
        self.raised = False

    def __call__(self) -> bool:
        return self.raised

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.raised:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.raised = True

    @contextmanager
    def listening(self) -> Iterator[StopFlag]:
        """Listen to signals, where this thread may."""
        try:
            heard = [s for s in SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]
            before = [(s, signal.signal(s, self.handle)) for s in heard]
        except ValueError:  # not the main thread: somebody else listens
            before = []
        try:
            yield self
        finally:
            for number, handler in before:
                signal.signal(number, handler)


def plan_workers(wanted: str, units: int, device: torch.device) -> int:
    """How many units run side by side: one per GPU, or one per core where there are several."""
    if wanted != "auto":
        return max(1, min(int(wanted), units))
    if device.type == "cuda":
        return min(units, torch.cuda.device_count()) if device.index is None else 1
    return min(units, cores()) if device.type == "cpu" else 1


def execute(
    tasks: Sequence[UnitTask],
    workers: int,
    observers: Sequence[Observer],
    stop: StopFlag | None = None,
) -> list[UnitResult]:
    """Train every task; results come back in the order of the tasks."""
    with (stop or StopFlag()).listening() as stop:
        run = _run_in_turn if workers == 1 else _run_side_by_side
        results = run(tasks, workers, observers, stop)
    return [results[task.unit.name] for task in tasks if task.unit.name in results]


def ends_the_run(task: UnitTask, result: UnitResult) -> bool:
    """Whether the units that have not started yet should not start any more."""
    return result.state == INTERRUPTED or (
        result.state == DIVERGED and task.config.on_divergence == "stop"
    )


def _run_in_turn(
    tasks: Sequence[UnitTask], workers: int, observers: Sequence[Observer], stop: StopFlag
) -> dict[str, UnitResult]:
    results: dict[str, UnitResult] = {}
    for task in tasks:
        name = task.unit.name

        def report(epoch: int, metrics: dict[str, float], name: str = name) -> None:
            for observer in observers:
                observer.epoch_done(name, epoch, metrics)

        results[name] = train_unit(task, report, stop)
        for observer in observers:
            observer.unit_ended(name, results[name])
        if ends_the_run(task, results[name]):
            break
    return results


def train_unit(
    task: UnitTask, report: Callable[[int, dict[str, float]], None], stop: Callable[[], bool]
) -> UnitResult:
    """Train one unit; whatever goes wrong becomes its result, with the traceback in its folder."""
    try:
        return UnitFit(task).fit(report, stop)
    except Exception as error:
        folder = RunFolder(task.run).unit(task.unit.name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        return _without_result(task, FAILED, f"{type(error).__name__}: {error}")


def _run_side_by_side(
    tasks: Sequence[UnitTask], workers: int, observers: Sequence[Observer], stop: StopFlag
) -> dict[str, UnitResult]:
    for task in tasks:
        task.dataset.batch.share_memory()
    waiting = deque(enumerate(tasks))
    results: dict[str, UnitResult] = {}
    told = False
    with ProcessPool(range(workers), PRELOADED) as pool:
        while waiting or pool.is_busy:
            while waiting and pool.has_room and not stop():
                number, task = waiting.popleft()
                pool.start(number, partial(_train_in_worker, _placed(task, pool.next_slot)))
            if stop() and not told:
                told = True
                waiting.clear()
                pool.interrupt()
            for event in pool.events(timeout=0.5):
                task = tasks[event.task]
                name = task.unit.name
                if isinstance(event, Said):
                    for observer in observers:
                        observer.epoch_done(name, *event.message)
                    continue
                result = _lost(task, event) if isinstance(event, Lost) else event.result
                results[name] = result
                for observer in observers:
                    observer.unit_ended(name, result)
                if ends_the_run(task, result):
                    waiting.clear()
                    if result.state == DIVERGED:
                        pool.interrupt()
    return results


def _train_in_worker(task: UnitTask, send: Send) -> UnitResult:
    """One unit in a worker process, its epochs sent to the parent."""
    with StopFlag().listening() as stop:
        return train_unit(task, lambda epoch, metrics: send((epoch, metrics)), stop)


def _placed(task: UnitTask, slot: int) -> UnitTask:
    """Workers on CUDA take one device each."""
    if task.device != "cuda":
        return task
    return replace(task, device=f"cuda:{slot % torch.cuda.device_count()}")


def _lost(task: UnitTask, end: Lost) -> UnitResult:
    """What becomes of a unit whose process ended without a word."""
    # Workers listen to SIGTERM: it ends only those that were told to stop before they began.
    if end.exitcode == -signal.SIGTERM:
        return _without_result(task, INTERRUPTED, "stopped before its first epoch")
    return _without_result(task, FAILED, f"its process ended with code {end.exitcode}")


def _without_result(task: UnitTask, state: str, reason: str) -> UnitResult:
    result = UnitResult(
        unit=task.unit.name,
        state=state,
        epochs=0,
        selected_epoch=0,
        rule=Rule.NONE,
        metrics={},
        seconds=0.0,
        reason=reason,
    )
    run = RunFolder(task.run)
    run.unit(task.unit.name).mkdir(parents=True, exist_ok=True)
    run.write_result(result)
    return result
