"""`python -m lpgnn_cli.tracking.follow <run folder> <uri> <experiment>`: the mirror of a live run.

Runs beside training, at a low priority, until its standard input says that the run has ended
or the process that started it is gone; then sends the rest and exits: 0 if all was sent. Sweeps
have a follower of their own, which sends their jobs too.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lpgnn_cli import garbage, signals
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.tracking.mirror import Mirror, Sent

SHORTEST_WAIT, LONGEST_WAIT = 5.0, 30.0
# What passes may take of one core.
SHARE = 0.05
FINAL_ATTEMPTS = 2


class Sends(Protocol):
    """The part of a mirror that is used here."""

    def send(self, *, ended: bool) -> Sent: ...


def follow(mirror: Sends) -> int:
    parent = os.getppid()
    # The first pass imports mlflow and opens the store: its time says nothing of the next ones.
    _try_to_send(mirror, ended=False)
    garbage.resume()
    wait = SHORTEST_WAIT
    while not _has_ended(parent, wait):
        began = time.process_time()
        sent = _try_to_send(mirror, ended=False)
        longer = (time.process_time() - began) / SHARE if sent else 2 * wait
        wait = min(max(SHORTEST_WAIT, longer), LONGEST_WAIT)
    for attempt in range(FINAL_ATTEMPTS):
        if _try_to_send(mirror, ended=True):
            return 0
        time.sleep(attempt + 1)
    return 1


def _try_to_send(mirror: Sends, *, ended: bool) -> bool:
    try:
        mirror.send(ended=ended)
    except Exception:
        # Whatever it is, it is noted in tracking.json, training goes on, and we try again.
        return False
    return True


def _has_ended(parent: int, wait: float) -> bool:
    """Waits for the word that the run has ended, but at most `wait` seconds."""
    deadline = time.monotonic() + wait
    while True:
        remaining = max(0.0, deadline - time.monotonic())
        readable, _, _ = select.select([sys.stdin], [], [], min(1.0, remaining))
        if readable or os.getppid() != parent:
            return True
        if remaining == 0:
            return False


def main(make_mirror: Callable[[RunFolder, str, str], Sends] = Mirror) -> int:
    folder, uri, experiment = sys.argv[1:]
    # Whoever stops all processes of a job reaches us too, but the rest is still to be sent.
    signals.ignore()
    garbage.pause()
    # Behind training, but not so far that all the work is left for the end.
    os.nice(10)
    try:
        return follow(make_mirror(RunFolder(Path(folder)), uri, experiment))
    finally:
        garbage.leave_behind()


if __name__ == "__main__":
    sys.exit(main())
