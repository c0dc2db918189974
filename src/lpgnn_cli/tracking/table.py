"""A metrics file that grows while it is read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lpgnn_cli.metrics import TIME


class GrowingTable:
    """The complete rows of a metrics file; `refresh` reads only what was added.

    `digests[n]` stands for the first n rows without their times: a resumed run computes the same
    rows again at other times, or others.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._forget(inode=0)

    def _forget(self, inode: int) -> None:
        self._inode = inode
        self._offset = 0
        self.columns: list[str] = []
        self.rows: list[dict[str, float]] = []
        self.digests = [""]

    def refresh(self) -> None:
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            # A rewritten file is another file: writers replace, or else append.
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode:
                self._forget(inode)
            file.seek(self._offset)
            complete, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(complete) + len(newline)
        for line in complete.decode().splitlines():
            self._add(line.split(","))

    def _add(self, cells: list[str]) -> None:
        if not self.columns:
            self.columns = cells
            return
        row = dict(zip(self.columns, map(float, cells), strict=True))
        self.rows.append(row)
        values = [value for name, value in row.items() if name != TIME]
        self.digests.append(hashlib.sha1(f"{self.digests[-1]}{values}".encode()).hexdigest())
