"""Checkpoints: everything a unit needs to go on, or to be scored, in one file of plain tensors.

The file is the zip that torch writes, with the sha256 of all its bytes as the zip's own comment, so
that every program that reads such zips still does, and not one bit can change unnoticed.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.errors import UserError

FORMAT = 3
# Its files have no sha256: they are believed if the zip's own sums are right.
WITHOUT_DIGEST = 2
_PREFIX = b"sha256:"
_COMMENT = len(_PREFIX) + 64
_LENGTH = _COMMENT.to_bytes(2, "little")


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write atomically: whoever reads, or is killed now, has the old file or the new one."""
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **content}, buffer)
    # A zip ends with the length of its comment, which is 0 so far.
    body = buffer.getvalue()[:-2]
    write_atomically(path, body + _LENGTH + _digest(body))


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read back what `save_checkpoint` wrote, all of it or nothing; nothing in it is executed."""
    if not path.is_file():
        raise UserError(f"{path} {'is not a file' if path.exists() else 'does not exist'}.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error
    signed = data[-_COMMENT - 2 :] == _LENGTH + _digest(data[: -_COMMENT - 2])
    try:
        if not signed:
            _check_members(data)
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except UserError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path} is not a checkpoint that can be read: {reason}.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a checkpoint of lpgnn.")
    version = content.get("format")
    if version == FORMAT and not signed:
        raise UserError(f"{path} is damaged: its content does not have the sha256 it was given.")
    if version not in (FORMAT, WITHOUT_DIGEST):
        raise UserError(f"{path} has checkpoint format {version}; this version reads {FORMAT}.")
    return content


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What a checkpoint lacks, or has of the wrong kind, becomes one sentence."""
    try:
        yield
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path} does not hold what a checkpoint of lpgnn holds: {type(error).__name__}, "
            f"{reason}."
        ) from error


def _digest(body: bytes) -> bytes:
    return _PREFIX + hashlib.sha256(body).hexdigest().encode()


def _check_members(data: bytes) -> None:
    """The zip's own sums, which torch does not look at; nothing in it may unpack to more."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("its members are packed, which torch never does")
            broken = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ValueError(f"it is damaged or not a zip file ({error})") from error
    if broken is not None:
        raise ValueError(f"its member {broken} is damaged")
