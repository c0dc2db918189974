"""Predictions as files: rows of CSV or JSON, written as they come, or arrays of numpy.

Nothing but what is being written is held in memory.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from lpgnn_cli.atomic import replacing
from lpgnn_cli.errors import UserError

# One row per item, or one row per node.
Columns = Mapping[str, NDArray[Any]]
CSV, JSON, NPZ = "csv", "json", "npz"
SCREEN = "-"
# In CSV every class has a column of its own.
SINGULAR = {"probabilities": "probability"}


def chosen_format(output: str, asked: str | None) -> str:
    """As it is asked for, or as the name of the file says."""
    suffix = Path(output).suffix.removeprefix(".").lower()
    known = (CSV, JSON, NPZ)
    chosen = asked or (CSV if output == SCREEN else suffix)
    if chosen not in known:
        raise UserError(
            f"output={output} does not say what to write: end it in .csv, .json or .npz, or set "
            "format."
        )
    if output == SCREEN and chosen == NPZ:
        raise UserError("arrays cannot be printed: name a file as output, or set format=csv.")
    return chosen


class Rows(ABC):
    """Takes the columns of some items at a time."""

    @abstractmethod
    def add(self, columns: Columns) -> None: ...

    def close(self) -> None:
        return None


class CsvRows(Rows):
    def __init__(self, file: TextIO) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._header: list[str] = []

    def add(self, columns: Columns) -> None:
        flat = dict(_flat(columns))
        if not self._header:
            self._header = list(flat)
            self._writer.writerow(self._header)
        self._writer.writerows(zip(*(column.tolist() for column in flat.values()), strict=True))


class JsonRows(Rows):
    """A list of objects, one line each."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._before = "[\n"

    def add(self, columns: Columns) -> None:
        for values in zip(*(column.tolist() for column in columns.values()), strict=True):
            row = dict(zip(columns, values, strict=True))
            self._file.write(f"{self._before}{json.dumps(row)}")
            self._before = ",\n"

    def close(self) -> None:
        self._file.write("\n]\n")


class Arrays(Rows):
    """Arrays of known lengths, filled piece by piece in files of their own."""

    def __init__(self, folder: Path, length: int) -> None:
        self._folder = folder
        self._length = length
        self._filled = 0
        self._arrays: dict[str, Any] = {}

    def add(self, columns: Columns) -> None:
        size = len(next(iter(columns.values())))
        for name, piece in columns.items():
            if name not in self._arrays:
                path = self._folder / f"{name}.npy"
                path.parent.mkdir(parents=True, exist_ok=True)
                shape = (self._length, *piece.shape[1:])
                self._arrays[name] = open_memmap(path, "w+", dtype=piece.dtype, shape=shape)
            self._arrays[name][self._filled : self._filled + size] = piece
        self._filled += size

    def close(self) -> None:
        for array in self._arrays.values():
            array.flush()


@contextmanager
def written_rows(output: str, form: str) -> Iterator[Rows]:
    """Rows that are on the screen at once, or in the file once all of them are there."""
    if output == SCREEN:
        place: AbstractContextManager[TextIO] = nullcontext(sys.stdout)
    else:
        place = _replaced(_in_folder(output))
    with place as file:
        rows = JsonRows(file) if form == JSON else CsvRows(file)
        yield rows
        rows.close()


@contextmanager
def written_arrays(
    output: str, lengths: Sequence[int], whole: Columns
) -> Iterator[tuple[Arrays, ...]]:
    """Arrays of some lengths to be filled, and some as a `whole`: in one npz file at the end."""
    path = _in_folder(output)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        filled = tuple(Arrays(scratch, length) for length in lengths)
        yield filled
        for arrays in filled:
            arrays.close()
        for name, array in whole.items():
            np.save(scratch / f"{name}.npy", array)
        with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            for file in sorted(scratch.rglob("*.npy")):
                archive.write(file, file.relative_to(scratch).as_posix())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _replaced(path: Path) -> Iterator[TextIO]:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        yield file


def _in_folder(output: str) -> Path:
    path = Path(output).expanduser()
    if path.is_dir():
        raise UserError(f"output={output} is a folder: name a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path.parent} cannot be made: {error.strerror}.") from error
    return path.absolute()


def _flat(columns: Columns) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, column in columns.items():
        if column.ndim == 1:
            yield name, column
        else:
            single = SINGULAR.get(name, name)
            yield from ((f"{single}_{k}", values) for k, values in enumerate(column.T))
