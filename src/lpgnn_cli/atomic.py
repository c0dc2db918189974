"""Files that are replaced as a whole: a reader sees the old file or the new one, never half."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write instead of `path`, which it becomes at the end; an error leaves no trace."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Root may put a file in the place of /dev/null.
            raise FileExistsError(errno.EEXIST, "it is a device or a pipe, not a file")
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        # A disk that is full does not say for which file.
        error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace the content of `path`, or leave it as it is."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def remove_temporaries(folder: Path) -> None:
    """What writers that were killed left behind; nobody else may be writing there now."""
    for path in folder.glob(".*.*"):
        if path.suffix[1:].isdecimal():
            path.unlink(missing_ok=True)
