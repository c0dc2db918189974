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
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np
from numpy.lib import format as npy
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
    """Arrays that grow in files of their own, until they are put into one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # By name: the file, and an array of its kind.
        self._grown: dict[str, tuple[IO[bytes], NDArray[Any]]] = {}
        self._lengths: dict[str, int] = {}

    def add(self, columns: Columns) -> None:
        for name, piece in columns.items():
            if name not in self._grown:
                path = self._folder / f"{len(self._grown)}.raw"
                self._grown[name] = path.open("w+b"), piece[:0]
            self._lengths[name] = self._lengths.get(name, 0) + len(piece)
            self._grown[name][0].write(np.ascontiguousarray(piece).tobytes())

    def write(self, archive: zipfile.ZipFile) -> None:
        for name, (file, kind) in self._grown.items():
            header = {
                "descr": npy.dtype_to_descr(kind.dtype),
                "fortran_order": False,
                "shape": (self._lengths[name], *kind.shape[1:]),
            }
            file.seek(0)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array_header_2_0(member, header)
                shutil.copyfileobj(file, member)

    def close(self) -> None:
        for file, _ in self._grown.values():
            file.close()


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
def written_arrays(output: str) -> Iterator[Arrays]:
    """Arrays that are in one npz file once all of their rows are there."""
    path = _in_folder(output)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        with closing(Arrays(scratch)) as arrays:
            yield arrays
            with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
                arrays.write(archive)
    except OSError as error:
        error.filename = str(path)  # rather than that of a file nobody has heard of
        raise
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
    if path.exists() and not path.is_file():
        raise UserError(f"output={output} is a device or a pipe: name a file, or - to print.")
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
