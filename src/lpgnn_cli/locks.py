"""Locks of the system: it frees them when the process that holds one ends, however it ends.

They also hold between machines that share a file system, if that has locks; one that has none is
named on stderr, and then nobody is kept out.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Long enough for those that only look whether a lock is held.
LOOK_SECONDS = 1.0
POLL_SECONDS = 0.02
# A link is not followed, and a pipe in the place of a lock not waited for.
_PLAINLY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK}


class Busy(Exception):
    """Another process has the lock."""


@contextmanager
def held(path: Path, wait: float = LOOK_SECONDS) -> Iterator[None]:
    """Hold the lock; `Busy` if another process still has it after `wait` seconds."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _PLAINLY, 0o666)
    try:
        _acquire(descriptor, path, wait)
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether some process has the lock now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _PLAINLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        # Without locks, who says that it is running is believed.
        return error.errno in _NO_LOCKS
    finally:
        os.close(descriptor)
    return False


def _acquire(descriptor: int, path: Path, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Busy(f"another process holds {path}") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            sentence = "its file system has no locks; take care that no run is computed twice"
            print(f"lpgnn: {path.parent}: {sentence}.", file=sys.stderr)
            return
        time.sleep(POLL_SECONDS)
