"""For all tests."""

from __future__ import annotations

import signal
from typing import TypeVar

T = TypeVar("T")

# Jobs started in the background ignore Ctrl-C, and those behind `nohup` hang-ups, and hand that on
# to what they start; the tests that send them need them to arrive.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def present(value: T | None) -> T:
    """What has to be there in a test, to whatever would go on with it."""
    assert value is not None
    return value
