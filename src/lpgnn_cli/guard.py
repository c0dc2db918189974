"""`python -m lpgnn_cli.guard PROGRAM ...`: a program that does not outlive who started it.

Its standard input is a pipe that nobody writes to. When the other end is closed, be it that its
owner was killed, the program is ended with all the processes it has started.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys

from lpgnn_cli import signals

GRACE = 5.0
LOOK_SECONDS = 0.25


def main(command: list[str]) -> int:
    # In a group of its own, which can be ended as a whole.
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    signals.ignore()
    try:
        while program.poll() is None and not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
            pass
    finally:
        _end(program)
    return program.returncode


def _end(program: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(timeout=GRACE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
