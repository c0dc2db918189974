"""Arrays that are too large for a checkpoint: files beside it, which the checkpoint names.

A file is written once and never changed, so a checkpoint and its files always belong together;
those that no checkpoint names any more are deleted. Nothing is read or written but in pieces.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.errors import UserError

FOLDER = "rows"
# What stands for an array in a checkpoint.
MARK = "lpgnn rows"
PIECE = 1 << 22
DTYPES = {"float32": torch.float32, "float64": torch.float64}


class RowFiles:
    """Those of the checkpoints of one unit, whose folder is given."""

    def __init__(self, unit: Path) -> None:
        self.folder = unit / FOLDER
        # Of the epoch that is being saved, by the place of the array in memory: several checkpoints
        # may be of one epoch.
        self.written: dict[int, dict[str, Any]] = {}
        self.on_disk: set[str] = set()

    def set_aside(self, content: Any, is_large: Callable[[Tensor], bool]) -> Any:
        """The same content with marks for large arrays, which are written, and copies of others."""
        if isinstance(content, Tensor):
            if not is_large(content):
                return content.detach().to("cpu", copy=True)
            place = content.data_ptr()
            if place not in self.written:
                self.written[place] = self._write(content.detach())
            return dict(self.written[place])
        if isinstance(content, dict):
            return {key: self.set_aside(value, is_large) for key, value in content.items()}
        if isinstance(content, (list, tuple)):
            return type(content)(self.set_aside(value, is_large) for value in content)
        return content

    def brought_back(self, content: Any) -> Any:
        """The same content with arrays for marks: mapped, for reading."""
        if isinstance(content, dict):
            if MARK in content:
                return self._read(content)
            return {key: self.brought_back(value) for key, value in content.items()}
        if isinstance(content, (list, tuple)):
            return type(content)(map(self.brought_back, content))
        return content

    def moved_on(self) -> None:
        """The arrays have changed since they were written."""
        self.written = {}

    def saved(self, contents: Iterable[Any]) -> None:
        """These are the checkpoints that are in the folder of the unit now."""
        self.on_disk = {name for content in contents for name in _names(content)}
        self.delete_unnamed([])

    def delete_unnamed(self, contents: Iterable[Any]) -> None:
        """Keep the files that a checkpoint names: in the folder, or one of these to be saved."""
        if not self.folder.is_dir():
            return
        named = self.on_disk.union(name for content in contents for name in _names(content))
        for path in self.folder.iterdir():
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _write(self, array: Tensor) -> dict[str, Any]:
        self.folder.mkdir(exist_ok=True)
        name = f"{uuid.uuid4().hex}.bin"
        digest = hashlib.sha256()
        with (self.folder / name).open("wb") as file:
            for piece in array.contiguous().flatten().split(PIECE):
                data = piece.numpy().data
                digest.update(data)
                file.write(data)
        dtype = str(array.dtype).removeprefix("torch.")
        return {
            MARK: name,
            "dtype": dtype,
            "shape": list(array.shape),
            "sha256": digest.hexdigest(),
        }

    def _read(self, mark: dict[str, Any]) -> Tensor:
        path = self.folder / Path(mark[MARK]).name
        dtype, shape = DTYPES[mark["dtype"]], torch.Size(mark["shape"])
        if not path.is_file() or path.stat().st_size != shape.numel() * dtype.itemsize:
            raise UserError(f"{path} is missing or has another size: its checkpoint needs it.")
        array = torch.from_file(str(path), shared=False, size=shape.numel(), dtype=dtype)
        digest = hashlib.sha256()
        for piece in array.split(PIECE):
            digest.update(piece.numpy().data)
        if digest.hexdigest() != mark["sha256"]:
            raise UserError(
                f"{path} is damaged: its content does not have the sha256 it was given."
            )
        return array.view(shape)


def _names(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        if MARK in content:
            yield content[MARK]
        else:
            for value in content.values():
                yield from _names(value)
    elif isinstance(content, (list, tuple)):
        for value in content:
            yield from _names(value)
