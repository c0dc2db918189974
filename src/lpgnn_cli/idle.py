"""Let idle threads of torch go to sleep soon.

A thread of GNU's OpenMP that waits for work spins for milliseconds, and the threads of our own
kernels find every core taken: an epoch of NCI1 took 65 ms on two threads, 66 on one. After some ten
microseconds of spinning it takes 40. Without any, small operations wait for threads to wake: an
epoch of MUTAG takes 4 ms rather than 2.
"""

from __future__ import annotations

import os

SPINS = "5000"


def sleep_soon() -> None:
    """For OpenMP libraries that are loaded from now on; what the user has set stays."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
