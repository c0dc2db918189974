"""Worker processes: results, deaths, and slots on GPUs, with devices that are not there."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import pytest

from hydra_plugins.lpgnn_launcher import WorkersLauncher
from lpgnn_cli.errors import UserError
from lpgnn_cli.sweeps.pool import Died, run_in_pool
from lpgnn_cli.sweeps.workers import plan_slots

# Which GPU a job sees, whether torch was there before it could tell, and when the job ran.
LOOK = (
    "(__import__('os').environ['CUDA_VISIBLE_DEVICES'], 'torch' in __import__('sys').modules, "
    "__import__('time').time(), __import__('time').sleep(0.5), __import__('time').time())"
)


def run(tasks: list[Any], slots: list[str | None], stop_after: int = 100) -> dict[int, Any]:
    found: dict[int, Any] = {}
    run_in_pool(tasks, slots, found.__setitem__, lambda: len(found) >= stop_after)
    return found


def test_a_crash_ends_one_task_and_no_other() -> None:
    tasks = [
        partial(abs, -1),
        partial(os._exit, 3),
        partial(signal.raise_signal, signal.SIGKILL),
        partial(abs, -4),
    ]
    found = run(tasks, [None, None])
    assert found[0] == 1
    assert found[3] == 4
    assert found[1] == Died("its process ended with code 3")
    assert found[2] == Died("its process was ended by SIGKILL (out of memory?)")


def test_no_further_task_starts_once_it_stops() -> None:
    assert set(run([partial(abs, -n) for n in range(5)], [None], stop_after=2)) == {0, 1}


def test_jobs_see_their_gpu_alone_and_a_free_gpu_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    launcher = WorkersLauncher("auto", ["0", "2"], jobs_per_device=2)
    found = run([partial(eval, LOOK)] * 6, plan_slots(launcher))
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1,2"
    assert not any(early for _, early, *_ in found.values())
    by_device = {
        device: [(start, end) for seen, _, start, _, end in found.values() if seen == device]
        for device in ("0", "2")
    }
    assert sum(map(len, by_device.values())) == 6
    assert all(len(times) >= 2 for times in by_device.values())
    for times in by_device.values():
        for moment, _ in times:
            assert sum(start <= moment < end for start, end in times) <= 2


def test_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-1")
    assert plan_slots(WorkersLauncher("auto", "auto", 2)) == ["3", "GPU-1", "3", "GPU-1"]
    assert plan_slots(WorkersLauncher(3, [0, 1], 2)) == ["0", "1", "0"]
    assert plan_slots(WorkersLauncher(2, None, 1)) == [None, None]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UserError, match="finds no GPU"):
        plan_slots(WorkersLauncher("auto", "auto", 1))
    with pytest.raises(UserError, match=r"workers must be auto or a number"):
        plan_slots(WorkersLauncher("many", None, 1))
