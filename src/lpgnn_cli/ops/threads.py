"""Kernels on several threads; those of LLVM let go of Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import torch

# Fewer numbers than this are faster on one thread.
WORTH_A_THREAD = 1_000_000


def run_all(
    run: Callable[[int, int], None], blocks: list[int], work: int, *, one_by_one: bool = False
) -> None:
    """run(first, stop) over all nodes, on the threads that torch may use."""
    if work < WORTH_A_THREAD and not one_by_one:
        run(blocks[0], blocks[-1])
        return
    threads = min(torch.get_num_threads(), 1 + work // WORTH_A_THREAD, len(blocks) - 1)
    share = -(-(len(blocks) - 1) // max(threads, 1))
    shares = [blocks[i : i + share + 1] for i in range(0, len(blocks) - 1, share)]

    def run_share(bounds: list[int]) -> None:
        if not one_by_one:
            bounds = [bounds[0], bounds[-1]]
        for first, stop in pairwise(bounds):
            run(first, stop)

    if len(shares) == 1:
        run_share(shares[0])
    else:
        # The calling thread takes a share, too.
        others = [_threads(os.getpid()).submit(run_share, bounds) for bounds in shares[1:]]
        run_share(shares[0])
        for other in others:
            other.result()


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Of this process: those of a parent do not live on in a fork."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="arc-kernel")
