"""Keep glibc from giving large tensors back to the system after every operation.

By default glibc maps each large block afresh and unmaps it when it is freed, so that every
operation of an epoch pays for the page faults of its result. Blocks that stay in the heap are used
again at once, which makes whole epochs 1.3 to 2 times faster on a CPU.
"""

from __future__ import annotations

import ctypes
import sys

# From glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3

# mallopt takes C ints.
_INT_MAX = 2**31 - 1
_TOP_PAD = 200_000_000


def tune_allocator() -> bool:
    """Raise glibc's thresholds for this process; True where that was possible."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        mallopt, _ = libc.mallopt, libc.gnu_get_libc_version
    except (OSError, AttributeError):  # another C library
        return False
    return all(
        mallopt(option, value) == 1
        for option, value in (
            (M_MMAP_THRESHOLD, _INT_MAX),
            (M_TRIM_THRESHOLD, _INT_MAX),
            (M_TOP_PAD, _TOP_PAD),
        )
    )
