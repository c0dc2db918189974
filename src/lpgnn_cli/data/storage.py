"""Checked tables as compact numpy archives: the cache of parsed datasets, and the embedded copy."""

from __future__ import annotations

import contextlib
import os
import zipfile
from importlib.resources import files as package_files
from pathlib import Path
from typing import IO, Any

import numpy as np

from lpgnn_cli.atomic import replacing
from lpgnn_cli.data.archive import TuFiles
from lpgnn_cli.data.tu import TuTables, read_tables
from lpgnn_cli.errors import UserError

# Part of the key of a cached parse: raise it whenever `tu.py` reads the same files differently.
READER_VERSION = 1


def cache_folder() -> Path:
    """Where parsed datasets are kept: $LPGNN_CACHE, or the user's cache folder."""
    chosen = os.environ.get("LPGNN_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("lpgnn", appauthor=False))


def read_cached(files: TuFiles) -> TuTables:
    """Parse the files, or take what an earlier parse of exactly these files left."""
    path = cache_folder() / "parsed" / f"{files.name}-{files.digest()[:32]}-v{READER_VERSION}.npz"
    try:
        with path.open("rb") as file:
            return load_tables(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass  # absent, or damaged: parse again and replace it
    tables = read_tables(files)
    # A cache that cannot be written costs time, nothing else.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, temporary.open("wb") as file:
            save_tables(tables, file)
    return tables


def embedded_names() -> list[str]:
    folder = package_files("lpgnn_cli.data") / "embedded"
    return sorted(f.name.removesuffix(".npz") for f in folder.iterdir() if f.name.endswith(".npz"))


def read_embedded(name: str) -> TuTables:
    """The dataset that ships inside the package."""
    if name not in embedded_names():
        raise UserError(
            f"The package has no copy of {name}, only of {', '.join(embedded_names())}: set "
            "dataset.embedded=false."
        )
    with (package_files("lpgnn_cli.data") / "embedded" / f"{name}.npz").open("rb") as file:
        return load_tables(file)


def save_tables(tables: TuTables, file: IO[bytes]) -> None:
    arrays: dict[str, Any] = tables.to_arrays()
    np.savez_compressed(file, **arrays)


def load_tables(file: IO[bytes]) -> TuTables:
    with np.load(file, allow_pickle=False) as arrays:
        return TuTables.from_arrays(dict(arrays))
