"""Sweeps: many `lpgnn train` that finish, resume and use what machines there are.

A job is known by what it computes (`identity`), and its run folder is found by that name, so that
whoever comes later, the same sweep or another one, takes what is there and goes on with the rest.

    commands/sweep.py   composes, plans, runs, reports
    plan                the jobs of a batch, and which of them are to be computed
    supervisor          between Hydra's sweeper and its launcher: skips, launches, settles, retries
    function            what a launcher runs: one job, from its lock to its result
    pool                worker processes of this machine, with slots for GPUs
    leaderboard         what came out

Importing this package puts it where the Python door has its function `lpgnn.sweep`, so it can be
called as that function.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *words: str, **settings: Any) -> Any:
        return import_module("lpgnn_cli.api").sweep(*words, **settings)


sys.modules[__name__].__class__ = _Callable
