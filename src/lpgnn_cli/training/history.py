"""The weights of every epoch of a unit in one file, while nobody knows which epoch will be wanted.

One record of equal size per epoch: the bytes of all tensors of the network, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from lpgnn_cli.model.network import Network

FILE = "weights.bin"


class WeightHistory:
    """Appends the weights of one epoch after the other; does nothing where `file` is None."""

    def __init__(self, file: BinaryIO | None) -> None:
        self._file = file

    @classmethod
    def open(
        cls, path: Path, network: Network, *, done: int, epochs: int, limit: int
    ) -> WeightHistory:
        """Goes on after `done` epochs, unless all `epochs` exceed `limit` bytes or some are gone.

        A file that would not be complete is of no use to anybody: it is deleted.
        """
        size = record_size(network)
        kept = path.stat().st_size if path.is_file() else 0
        if size * epochs > limit or kept < size * done:
            path.unlink(missing_ok=True)
            return cls(None)
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("r+b" if kept else "wb")
        file.truncate(size * done)
        file.seek(0, 2)
        return cls(file)

    def write(self, network: Network) -> None:
        if self._file is not None:
            for tensor in network.state_dict().values():
                self._file.write(_bytes(tensor).numpy().tobytes())
            # A checkpoint of this epoch must not be on disk before its weights are.
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def record_size(network: Network) -> int:
    return sum(tensor.nbytes for tensor in network.state_dict().values())


def read_weights(path: Path, epoch: int, like: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """The weights after an epoch, shaped as in `like`; None where the file does not have them."""
    size = sum(tensor.nbytes for tensor in like.values())
    if not path.is_file() or path.stat().st_size < size * epoch:
        return None
    record = torch.from_numpy(
        np.fromfile(path, dtype=np.uint8, count=size, offset=size * (epoch - 1))
    )
    pieces = record.split([tensor.nbytes for tensor in like.values()])
    return {
        name: piece.clone().view(tensor.dtype).reshape(tensor.shape)
        for (name, tensor), piece in zip(like.items(), pieces, strict=True)
    }


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().cpu().reshape(-1).view(torch.uint8)
