"""Plain arrays out of npz files: sizes are checked before anything is read, and nothing is run."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from lpgnn_cli.data.rows import Rows, rows_of_bytes
from lpgnn_cli.errors import UserError

# More than the published node-level datasets unpack to; a file with more is refused.
MAX_BYTES = 1 << 32

Arrays = dict[str, Any]


def read_npz(path: Path) -> Arrays:
    """All arrays of a file that somebody else may have written."""
    with _opened(path) as archive:
        members = _members(archive)
        _check_size(path, sum(member.file_size for member in members.values()))
        return {name: _read(archive, member) for name, member in members.items()}


def require(arrays: Collection[str], names: Sequence[str], path: Path, hint: str = "") -> None:
    """Refuse a file without all of these arrays."""
    if missing := [name for name in names if name not in arrays]:
        what = "array" if len(missing) == 1 else "arrays"
        raise UserError(f"{path} lacks the {what} {', '.join(missing)}{hint}.")


@contextmanager
def opened_npz(path: Path) -> Iterator[dict[str, Rows | None]]:
    """Its arrays, to be read by rows; None: one that is stored by columns."""
    with _opened(path) as archive, ExitStack() as stack:
        found = {}
        for name, member in _members(archive).items():
            file = stack.enter_context(archive.open(member))
            found[name] = _rows(file, member)
        yield found


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever is wrong with it while it is open is said in a sentence."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not an npz file.") from None
    except UserError:
        raise
    except (ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path} is not an npz file of plain arrays: {_reason(error)}.") from error
    except (NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path} is encrypted or packed in a way that cannot be read.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in found:
            raise ValueError(f"it has {member.filename} twice")
        if name != member.filename:
            found[name] = member
    return found


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    with archive.open(member) as file:
        _header(file, member)
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False)


def _rows(file: IO[bytes], member: zipfile.ZipInfo) -> Rows | None:
    shape, by_columns, dtype = _header(file, member)
    if not shape or (by_columns and len(shape) > 1):
        return None
    empty = np.zeros((0, *shape[1:]), dtype)
    if 0 in shape[1:]:  # Rows of no bytes, which a file cannot tell.
        return Rows(iter([np.zeros(shape, dtype)]), empty)
    return Rows(rows_of_bytes(file, empty), empty)


def as_matrix(array: Any, name: str) -> npt.NDArray[np.float32]:
    """One row of finite numbers per node or arc; anything else is a ValueError."""
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix, not of shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers, not {array.dtype}")
    with np.errstate(over="ignore"):  # what 32 bits cannot hold is not finite
        matrix: npt.NDArray[np.float32] = array.astype(np.float32)
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} has a value that is no finite number")
    return matrix


def _header(file: IO[bytes], member: zipfile.ZipInfo) -> tuple[tuple[int, ...], bool, Any]:
    """Read first: an array of another size than its member would fill the memory."""
    version = npy.read_magic(file)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f"{member.filename} has a newer format")
    shape, by_columns, dtype = read_header[version](file)
    if dtype.hasobject:
        raise ValueError(f"{member.filename} holds Python objects")
    if int(np.prod(shape, dtype=object)) * dtype.itemsize != member.file_size - file.tell():
        raise ValueError(f"{member.filename} says it has another size than it has")
    return shape, by_columns, dtype


def _check_size(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise UserError(
            f"{path} is refused: it would unpack to {size:,} bytes, more than the {MAX_BYTES:,} "
            "allowed."
        )


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
