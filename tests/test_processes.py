"""The pool of worker processes: messages, results, deaths, and what becomes of workers."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lpgnn_cli.processes import UNIT_MODULES, Event, Lost, ProcessPool, Returned, Said

# Worker processes must be able to import what they run.
TASKS = '''
import os, signal, time
from pathlib import Path

def count(upto, send):
    for number in range(upto):
        send(number)
    return upto

def large(size, send):
    send("x" * size)
    return "y" * size

def die_in_a_message(send):
    import multiprocessing.connection as connection
    def half(self, buffer):
        os.write(self.fileno(), bytes(buffer)[: len(buffer) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    connection.Connection._send = half
    send("x" * 1000)

def environment_of(name, send):
    return os.environ.get(name), os.getcwd()

def page_faults(blocks, send):
    import resource
    def five(): [bytearray(20_000_000) for _ in range(5)]
    for _ in range(3): five()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(blocks // 5): five()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def raises(send):
    raise RuntimeError("a mistake in the task")

def save_at_the_end(file, send):
    """Waits until SIGTERM, and Ctrl-C is nothing to it."""
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    send(os.getpid())
    deadline = time.monotonic() + 60
    while not told and time.monotonic() < deadline:
        time.sleep(0.01)
    send("saving")
    Path(file).write_text("saved")
    return "saved"
'''
# The process of a pool that dies while its worker works.
SHORT_LIVED = """
import os, signal, sys
from functools import partial
from lpgnn_cli.processes import ProcessPool
import pool_tasks
if __name__ == "__main__":
    with ProcessPool([0]) as pool:
        pool.start(0, partial(pool_tasks.save_at_the_end, sys.argv[1]))
        while not list(pool.events(1.0)):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
"""


def make_pool(slots: int = 1) -> ProcessPool[int]:
    """With the fork server of training, which tests that come later in this process share."""
    return ProcessPool(range(slots), UNIT_MODULES)


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "pool_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pool_tasks", raising=False)
    invalidate_caches()
    return import_module("pool_tasks")


def run(*work: Callable[..., Any], slots: int = 2) -> list[Event]:
    waiting = list(enumerate(work))
    events: list[Event] = []
    with make_pool(slots) as pool:
        while waiting or pool.is_busy:
            while waiting and pool.has_room:
                pool.start(*waiting.pop(0))
            events += pool.events(timeout=1.0)
    return events


def test_messages_come_in_order_and_the_result_last(tasks: ModuleType) -> None:
    events = run(*[partial(tasks.count, upto) for upto in (3, 0, 2)])
    for number, upto in enumerate((3, 0, 2)):
        own = [event for event in events if event.task == number]
        assert own == [*(Said(number, n) for n in range(upto)), Returned(number, upto)]


def test_what_no_pipe_holds_at_once_arrives(tasks: ModuleType) -> None:
    size = 10_000_000
    (said, returned) = run(partial(tasks.large, size))
    assert said == Said(0, "x" * size)
    assert returned == Returned(0, "y" * size)


def test_a_lost_worker_is_known_by_its_exit_code(tasks: ModuleType) -> None:
    work = [tasks.die_in_a_message, tasks.raises, partial(tasks.count, 0)]
    found = {event.task: event for event in run(*work)}
    assert found == {0: Lost(0, -signal.SIGKILL), 1: Lost(1, 1), 2: Returned(2, 0)}


def test_workers_have_the_surroundings_of_now(
    tasks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of the moment when the fork server that all pools share was started."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        monkeypatch.setenv("LPGNN_RUNS", name)
        (event,) = run(partial(tasks.environment_of, "LPGNN_RUNS"))
        assert event == Returned(0, (name, str(tmp_path / name)))
    monkeypatch.delenv("LPGNN_RUNS")
    (event,) = run(partial(tasks.environment_of, "LPGNN_RUNS"))
    assert event == Returned(0, (None, str(tmp_path / "second")))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone is told")
def test_workers_use_freed_memory_again(tasks: ModuleType) -> None:
    (event,) = run(partial(tasks.page_faults, 100))
    assert isinstance(event, Returned)
    # 20 MB are about 4,900 pages, faulted in again by most of the 100 blocks if nobody tells.
    assert event.result < 2_000


def test_interrupted_workers_save_and_return(tasks: ModuleType, tmp_path: Path) -> None:
    with make_pool() as pool:
        pool.start(7, partial(tasks.save_at_the_end, str(tmp_path / "saved")))
        assert not pool.has_room
        (begun,) = wait_for(pool, Said)
        os.kill(begun.message, signal.SIGINT)  # as a terminal does; the pool decides
        assert list(pool.events(timeout=0.3)) == []
        pool.interrupt()
        assert wait_for(pool, Returned)[-1] == Returned(7, "saved")
        assert pool.has_room


def wait_for(pool: ProcessPool[int], kind: type[Event]) -> list[Any]:
    events: list[Any] = []
    deadline = time.monotonic() + 60
    while not any(isinstance(event, kind) for event in events):
        assert time.monotonic() < deadline
        events += pool.events(timeout=1.0)
    return events


def test_workers_save_when_the_pool_is_left(tasks: ModuleType, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    pool = make_pool()

    def leave() -> None:
        with pool:
            pool.start(0, partial(tasks.save_at_the_end, str(saved)))
            wait_for(pool, Said)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert saved.read_text() == "saved"


def test_workers_save_when_the_process_of_the_pool_is_killed(
    tasks: ModuleType, tmp_path: Path
) -> None:
    script, saved = tmp_path / "short_lived.py", tmp_path / "saved"
    script.write_text(SHORT_LIVED)
    process = subprocess.run([sys.executable, str(script), str(saved)], timeout=120)
    assert process.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while not (saved.is_file() and saved.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


TORN = """
import os
from multiprocessing import forkserver
from lpgnn_cli.processes import start_fork_server

start_fork_server([])
for told in {told!r}:
    receiver, sender = forkserver.connect_to_new_process([])
    os.write(sender, told)
    os.close(sender)
    while os.read(receiver, 64):
        pass
"""


@pytest.mark.parametrize(
    ("told", "complains"),
    [([b"", b"\x80\x04\x95\xff\x00\x00"], False), ([b"cno_such_module\nname\n."], True)],
)
def test_a_worker_that_is_told_half_of_what_to_do_says_nothing(
    told: list[bytes], complains: bool
) -> None:
    """As one is whose pool is interrupted, or killed, while it starts; mistakes are still said."""
    words = [sys.executable, "-c", TORN.format(told=told)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert ("Traceback" in ended.stderr) is complains
    assert ended.stdout == ""
