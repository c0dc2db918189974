"""For all tests."""

from __future__ import annotations

import signal

# Jobs started in the background ignore Ctrl-C and hand that on to what they start; the tests that
# send it need it to arrive.
signal.signal(signal.SIGINT, signal.default_int_handler)
