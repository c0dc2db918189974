from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from lpgnn_cli import garbage


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.enable()
    gc.unfreeze()


def test_what_was_made_in_a_pause_stays_and_the_rest_is_collected() -> None:
    garbage.pause()
    kept = weakref.ref(Cycle())
    assert not gc.isenabled()
    garbage.resume()
    assert gc.isenabled()
    dropped = weakref.ref(Cycle())
    gc.collect()
    assert kept() is not None
    assert dropped() is None


def test_without_a_pause_nothing_is_frozen() -> None:
    frozen = gc.get_freeze_count()
    garbage.resume()
    assert gc.get_freeze_count() == frozen


@pytest.mark.parametrize("words", [["--version"], ["data", "list"]])
def test_commands_end_as_before(words: list[str]) -> None:
    command = [sys.executable, "-m", "lpgnn_cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
