"""The text files of a TU dataset, out of a folder or a zip; a zip is never unpacked to disk."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from lpgnn_cli.errors import UserError

# More text than any dataset of the collection has; a zip with more is refused.
MAX_UNPACKED_BYTES = 1 << 30
MAX_MEMBER_BYTES = 1 << 29
# Text of this size that is packed to less than a hundredth says next to nothing.
SUSPICIOUS_BYTES, SUSPICIOUS_RATIO = 1 << 26, 100

TARGETS = "graph_labels"
REQUIRED = ("A", "graph_indicator", TARGETS)
OPTIONAL = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")


@dataclass(frozen=True)
class TuFiles:
    """The files of one dataset by suffix (`A` for NAME_A.txt), and how to name them to the user."""

    name: str
    origin: Path
    content: dict[str, bytes]

    def label(self, suffix: str) -> str:
        return label(self.origin, self.name, suffix)

    def digest(self) -> str:
        digest = hashlib.sha256(f"{self.name}\n".encode())
        for suffix, data in sorted(self.content.items()):
            digest.update(f"{suffix} {len(data)}\n".encode())
            digest.update(data)
        return digest.hexdigest()


def label(origin: Path, name: str, suffix: str) -> str:
    """How a file is named to the user."""
    return f"{origin}: {name}_{suffix}.txt"


def read_files(path: Path, name: str, *, targets: bool = True) -> TuFiles:
    """The files of dataset `name` from a zip or a folder; without `targets` no classes."""
    with opened_files(path, name, targets=targets) as files:
        return TuFiles(name, path, {suffix: file.read() for suffix, file in files.items()})


@contextmanager
def opened_files(path: Path, name: str, *, targets: bool = True) -> Iterator[dict[str, IO[bytes]]]:
    """The same, open at their beginnings."""
    with ExitStack() as stack:
        if path.is_dir():
            files = stack.enter_context(_opened_folder(path, name))
        elif path.is_file():
            files = stack.enter_context(_opened_zip(path, name))
        else:
            raise UserError(f"{path} does not exist: give the zip or the folder of {name}.")
        if not targets:
            files.pop(TARGETS, None)
        for suffix in REQUIRED:
            if suffix not in files and (targets or suffix != TARGETS):
                raise UserError(f"{path} has no {name}_{suffix}.txt, which a TU dataset must have.")
        yield files


@contextmanager
def _opened_folder(path: Path, name: str) -> Iterator[dict[str, IO[bytes]]]:
    folder = path / name if (path / name).is_dir() else path
    _check_name([p.name for p in folder.glob("*_A.txt")], path, name)
    with ExitStack() as stack:
        files: dict[str, IO[bytes]] = {}
        for suffix in REQUIRED + OPTIONAL:
            file = folder / f"{name}_{suffix}.txt"
            if file.is_file():
                try:
                    files[suffix] = stack.enter_context(file.open("rb"))
                except OSError as error:
                    raise UserError(f"{file} cannot be read: {error.strerror}.") from error
        yield files


@contextmanager
def _opened_zip(path: Path, name: str) -> Iterator[dict[str, IO[bytes]]]:
    try:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            wanted = _members(archive, path, name)
            _check_size(wanted.values(), path)
            yield {s: stack.enter_context(archive.open(member)) for s, member in wanted.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} is not a zip file or is damaged: delete it or get it again."
        ) from error
    except (NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path} is encrypted or packed in a way that cannot be read.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def _members(archive: zipfile.ZipFile, path: Path, name: str) -> dict[str, zipfile.ZipInfo]:
    if not all(m.filename for m in archive.infolist()):
        raise zipfile.BadZipFile("a member without a name")
    members = [m for m in archive.infolist() if not m.is_dir()]
    names = [PurePosixPath(m.filename).name for m in members]
    _check_name([n for n in names if n.endswith("_A.txt")], path, name)
    wanted: dict[str, zipfile.ZipInfo] = {}
    for suffix in REQUIRED + OPTIONAL:
        file = f"{name}_{suffix}.txt"
        if names.count(file) > 1:
            raise UserError(f"{path} is refused: it has {file} twice.")
        if file in names:
            wanted[suffix] = members[names.index(file)]
    return wanted


def _check_size(members: Iterable[zipfile.ZipInfo], path: Path) -> None:
    # The zip reader stops at the declared size of a member, so a size that lies cannot grow.
    members = list(members)
    for member in members:
        packed = max(1, member.compress_size)
        dense = member.file_size > SUSPICIOUS_BYTES
        if member.file_size > MAX_MEMBER_BYTES or (
            dense and member.file_size > SUSPICIOUS_RATIO * packed
        ):
            raise UserError(
                f"{path} is refused: its {PurePosixPath(member.filename).name} would unpack from "
                f"{packed:,} to {member.file_size:,} bytes; unpack it yourself and give the folder."
            )
    unpacked = sum(m.file_size for m in members)
    if unpacked > MAX_UNPACKED_BYTES:
        raise UserError(
            f"{path} is refused: it would unpack to {unpacked:,} bytes, more than the "
            f"{MAX_UNPACKED_BYTES:,} allowed; unpack it yourself and give the folder."
        )


def _check_name(adjacency_files: list[str], path: Path, name: str) -> None:
    found = sorted(f.removesuffix("_A.txt") for f in adjacency_files)
    if found and name not in found:
        raise UserError(
            f"{path} holds the dataset {' and '.join(found)}, not {name}: set "
            f"dataset.name={found[0]}."
        )
