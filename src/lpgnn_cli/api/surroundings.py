"""What a call changes for its own use and leaves to its caller as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.version import VersionBase

# Seeds and numbers of threads belong to the process, so calls from several threads take turns.
_turn = threading.RLock()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Work as in a process of our own, and leave torch and Hydra as they were.

    Seeds, threads and types of torch decide about numbers; Hydra may serve an app around us, to
    which our groups would be groups of its own.
    """
    with _turn:
        version, hydra, store = (
            VersionBase.instance(),
            HydraConfig.instance(),
            ConfigStore.instance(),
        )
        base, config, repo = version.version_base, hydra.cfg, _copy(store.repo)
        threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
        tf32 = torch.backends.cuda.matmul.allow_tf32
        torch.set_default_dtype(torch.float32)
        try:
            devices = range(torch.cuda.device_count())
            with torch.random.fork_rng(devices=devices), torch.enable_grad():
                yield
        finally:
            version.version_base, hydra.cfg = base, config
            # Hydra's plugins enter theirs once, when the first of us calls.
            store.repo = {**repo, "hydra": store.repo["hydra"]}
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)
            torch.backends.cuda.matmul.allow_tf32 = tf32


def _copy(repo: dict[str, Any]) -> dict[str, Any]:
    """The folders of Hydra's store; what is in them is never changed in place."""
    return {k: _copy(v) if isinstance(v, dict) else v for k, v in repo.items()}
