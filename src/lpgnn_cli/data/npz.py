"""Plain arrays out of npz files: sizes are checked before anything is read, and nothing is run."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from lpgnn_cli.errors import UserError

# More than the published node-level datasets unpack to; a file with more is refused.
MAX_BYTES = 1 << 32

Arrays = dict[str, Any]


def read_npz(path: Path) -> Arrays:
    """All arrays of a file that somebody else may have written."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            _check_size(path, sum(member.file_size for member in members))
            names = [member.filename.removesuffix(".npy") for member in members]
            arrays = [_read(archive, member) for member in members]
            return dict(zip(names, arrays, strict=True))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not an npz file.") from None
    except (ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path} is not an npz file of plain arrays: {_reason(error)}.") from error
    except (NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path} is encrypted or packed in a way that cannot be read.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """The header first: an array of another size than its member would fill the memory."""
    with archive.open(member) as file:
        version = npy.read_magic(file)
        read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        if version not in read_header:
            raise ValueError(f"{member.filename} has a newer format")
        shape, _, dtype = read_header[version](file)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds Python objects")
        if int(np.prod(shape, dtype=object)) * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.filename} says it has another size than it has")
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False)


def _check_size(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise UserError(
            f"{path} is refused: it would unpack to {size:,} bytes, more than the {MAX_BYTES:,} "
            "allowed."
        )


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
