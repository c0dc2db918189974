"""For all tests."""

from __future__ import annotations

import signal
from typing import TypeVar

T = TypeVar("T")

# Jobs started in the background ignore Ctrl-C and hand that on to what they start; the tests that
# send it need it to arrive.
signal.signal(signal.SIGINT, signal.default_int_handler)


def present(value: T | None) -> T:
    """What has to be there in a test, to whatever would go on with it."""
    assert value is not None
    return value
