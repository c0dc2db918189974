"""Tables that are read from their beginning to their end, as many rows at a time as are wanted."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from io import StringIO
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from lpgnn_cli.errors import UserError

Table = npt.NDArray[Any]

INTEGER = re.compile(r"[+-]?[0-9]+")
# Characters of a number that 64 bits hold, with some zeros before it.
LONGEST = 30
# Bytes that are read at a time; text takes several times the memory of what it is read from.
PIECE_BYTES = 1 << 22
# Of one line: more than the columns of any dataset take.
LONGEST_LINE = 1 << 26


class Rows:
    """The rows of a table that comes in pieces; `empty` is one without rows."""

    def __init__(self, pieces: Iterator[Table], empty: Table) -> None:
        self._pieces = pieces
        self._held = empty

    def hold(self, count: int) -> Table:
        """The next rows, at least so many as long as there are more, to be taken later."""
        found = [self._held]
        while sum(map(len, found)) < count:
            piece = next(self._pieces, None)
            if piece is None:
                break
            found = [*found, piece] if len(found[0]) else [piece]
        self._held = np.concatenate(found) if len(found) > 1 else found[0]
        return self._held

    def take(self, count: int) -> Table:
        """The next rows; fewer at the end."""
        held = self.hold(count)
        # A copy: what is left must not keep all of it in memory.
        self._held = held[count:].copy()
        return held[:count]


def rows_of_bytes(file: IO[bytes], empty: Table) -> Iterator[Table]:
    """Tables of some rows each, of which a file is the memory."""
    width = max(1, int(np.prod(empty.shape[1:])) * empty.dtype.itemsize)
    while data := file.read(max(1, PIECE_BYTES // width) * width):
        yield np.frombuffer(data, empty.dtype).reshape(-1, *empty.shape[1:])


def lines_of_numbers(
    file: IO[bytes], label: str, dtype: Any, columns: int | None = None
) -> Iterator[Table]:
    """Tables of some lines each; `columns` None: as many as the first line has.

    numpy parses, Python only looks for the line to blame; `label` is what the file is called.
    """
    line = 1
    for text in _texts(file, label):
        table = _parse(text, label, line, dtype, columns)
        yield table
        columns, line = table.shape[1], line + len(table)


def _parse(text: str, label: str, line: int, dtype: Any, columns: int | None) -> Table:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an integer written as a float is only warned about
            table = np.loadtxt(StringIO(text), dtype, delimiter=",", comments=None, ndmin=2)
    except (ValueError, DeprecationWarning, OverflowError):
        raise _blame(label, text, line, columns, dtype) from None
    # loadtxt leaves out blank lines, which would move all later rows up.
    if table.shape[0] != text.count("\n") + 1 or columns not in (None, table.shape[1]):
        raise _blame(label, text, line, columns, dtype)
    return table


def _texts(file: IO[bytes], label: str) -> Iterator[str]:
    """Whole lines, without the blank ones at the end of the file."""
    held = b""
    while data := file.read(PIECE_BYTES):
        data = held + data + file.readline(LONGEST_LINE)
        if len(data) > LONGEST_LINE and not data.endswith(b"\n") and file.read(1):
            raise UserError(f"{label} has a line of more than {LONGEST_LINE:,} characters.")
        text = data.rstrip()
        # Blank so far: whether something follows is not known yet.
        held = data[len(text) :]
        if text:
            # Latin-1 maps every byte to a character: what is no number is found as such, with
            # its line.
            yield text.decode("latin-1").replace("\r\n", "\n")
            held = _without_line_end(held)


def _without_line_end(data: bytes) -> bytes:
    return data.partition(b"\n")[2] if b"\n" in data else b""


def _blame(label: str, text: str, first: int, columns: int | None, dtype: Any) -> UserError:
    """Find the line that the fast parser could not read; `first` is the number of the first one."""
    integers = dtype is np.int64
    columns = columns or text.partition("\n")[0].count(",") + 1
    expected = f"{columns} {'integer' if integers else 'number'}{'s' if columns > 1 else ''}"
    for number, line in enumerate(text.split("\n"), start=first):
        tokens = [t.strip() for t in line.split(",")]
        if len(tokens) != columns or not all(_is_number(t, integers) for t in tokens):
            shown = line.strip() if len(line) <= 60 else f"{line.strip()[:57]}..."
            return UserError(f"{label}, line {number}: expected {expected}, found {shown!r}.")
    return UserError(f"{label} cannot be read as lines of {expected}.")


def _is_number(token: str, integer: bool) -> bool:
    if integer:
        digits = INTEGER.fullmatch(token) is not None and len(token) <= LONGEST
        return digits and abs(int(token)) < 2**63
    try:
        float(token)
    except ValueError:
        return False
    return "_" not in token and token.isascii()
