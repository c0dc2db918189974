"""Where arrays with a row per node live: in memory while there is room, in mapped files beyond.

A mapped file is a tensor like any other; the system keeps in memory what is in use, and writes the
rest to the disk. The file has no name any more once it is mapped, so that nothing is left behind,
however a process ends.
"""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from lpgnn_cli.config.dataset import DataConfig
from lpgnn_cli.runfolder import runs_root

# Arrays of the size of the states that a test phase or an evaluation needs at once.
SEVERAL = 6


def memory_limit(config: DataConfig) -> int:
    """Bytes that `data.memory` allows; null is half of what the machine has."""
    asked = config.memory_bytes
    return machine_memory() // 2 if asked is None else asked


def machine_memory() -> int:
    """Bytes that the machine has."""
    import psutil  # type: ignore[import-untyped,unused-ignore]

    return int(psutil.virtual_memory().total)


def free_memory() -> int:
    """Bytes that nobody needs now."""
    import psutil

    return int(psutil.virtual_memory().available)


@dataclass
class Room:
    """So many bytes of memory, and a folder for what does not fit."""

    limit: int
    folder: Path = field(default_factory=runs_root)
    # Bytes of arrays that stay, in memory and in files.
    used: int = 0
    mapped: int = 0
    _ranges: list[tuple[int, int]] = field(default_factory=list)

    def zeros(self, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Of the kind of a tensor, to stay."""
        size = math.prod(shape) * like.element_size()
        if self.used + size <= self.limit or not like.is_cpu:
            self.used += size
            return like.new_zeros(shape)
        self.mapped += size
        found = _map(self.folder, like, shape)
        self._ranges.append((found.data_ptr(), found.data_ptr() + size))
        return found

    def passing(self, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The same for a while: in memory if several of that size fit beside what stays."""
        size = math.prod(shape) * like.element_size()
        fits = not self.mapped and self.used + SEVERAL * size <= self.limit
        return like.new_zeros(shape) if fits or not like.is_cpu else _map(self.folder, like, shape)

    def holds(self, tensor: Tensor) -> bool:
        """Whether a tensor is one of the mapped ones that stay."""
        address = tensor.data_ptr()
        return any(start <= address < stop for start, stop in self._ranges)


def _map(folder: Path, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    if math.prod(shape) == 0:
        return like.new_zeros(shape)
    folder.mkdir(parents=True, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix=".rows-", dir=folder)
    os.close(handle)
    try:
        flat = torch.from_file(path, shared=True, size=math.prod(shape), dtype=like.dtype)
    finally:
        os.unlink(path)
    return flat.view(shape)
