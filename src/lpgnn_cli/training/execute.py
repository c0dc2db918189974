"""Running the units of a run, one after another or side by side in worker processes.

A unit in a process of its own takes nothing with it when it fails. The processes come from a fork
server that has imported torch once, so that one process per unit is cheap, and the dataset reaches
them through shared memory. Results do not depend on how many run at a time.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import torch

from lpgnn_cli import locks
from lpgnn_cli.atomic import remove_temporaries
from lpgnn_cli.errors import UserError, describe_os_error
from lpgnn_cli.processes import AGAIN, GRACE, UNIT_MODULES, Lost, ProcessPool, Said, Send, cores
from lpgnn_cli.runfolder import (
    DIVERGED,
    FAILED,
    INTERRUPTED,
    LOCK,
    Rule,
    RunFolder,
    UnitResult,
)
from lpgnn_cli.signals import StopFlag
from lpgnn_cli.training.fit import UnitFit, UnitTask
from lpgnn_cli.training.observer import Observer


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
        folder = RunFolder(task.run).make_unit(task.unit.name)
        # A worker of a run that was killed may still be saving.
        with locks.held(folder / LOCK, wait=GRACE):
            remove_temporaries(folder)
            return UnitFit(task).fit(report, stop)
    except locks.Busy:
        return _without_result(task, FAILED, "another process is still writing its folder")
    except UserError as error:
        return _without_result(task, FAILED, str(error))
    except OSError as error:
        return _without_result(task, FAILED, describe_os_error(error))
    except Exception as error:
        _note(task, "error.txt", traceback.format_exc())
        return _without_result(task, FAILED, f"{type(error).__name__}: {error}")


def _note(task: UnitTask, name: str, text: str) -> None:
    """A file in the folder of a unit, as far as the disk takes it."""
    with suppress(OSError):
        folder = RunFolder(task.run).make_unit(task.unit.name)
        (folder / name).write_text(text, encoding="utf-8")


def _run_side_by_side(
    tasks: Sequence[UnitTask], workers: int, observers: Sequence[Observer], stop: StopFlag
) -> dict[str, UnitResult]:
    for task in tasks:
        task.dataset.batch.share_memory()
    waiting = deque(enumerate(tasks))
    results: dict[str, UnitResult] = {}
    ending, told = False, 0.0
    with ProcessPool(range(workers), UNIT_MODULES) as pool:
        while waiting or pool.is_busy:
            while waiting and pool.has_room and not stop():
                number, task = waiting.popleft()
                pool.start(number, partial(_train_in_worker, _placed(task, pool.next_slot)))
            ending = ending or stop()
            if ending and time.monotonic() - told > AGAIN:
                # Again and again: one that is still starting may have missed it.
                waiting.clear()
                pool.interrupt()
                told = time.monotonic()
            for event in pool.events(timeout=AGAIN):
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
                    ending = ending or result.state == DIVERGED
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
    with suppress(OSError):  # that of the disk itself is told by its reason
        run.make_unit(task.unit.name)
        run.write_result(result)
    return result
