"""What a call changes for its own use and leaves to its caller as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.version import VersionBase

# Seeds and numbers of threads belong to the process, so calls from several threads take turns.
_turn = threading.RLock()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Restore torch's seeds and threads, and Hydra's state, which may serve an app around us."""
    with _turn:
        version, hydra = VersionBase.instance(), HydraConfig.instance()
        base, config = version.version_base, hydra.cfg
        threads, tf32 = torch.get_num_threads(), torch.backends.cuda.matmul.allow_tf32
        try:
            with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
                yield
        finally:
            version.version_base, hydra.cfg = base, config
            torch.set_num_threads(threads)
            torch.backends.cuda.matmul.allow_tf32 = tf32
