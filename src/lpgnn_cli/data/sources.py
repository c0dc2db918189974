"""Where a TU dataset comes from: the package, a path, the data folder, or the collection."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.data.archive import read_files
from lpgnn_cli.data.catalogue import ZIPS, check_counts, check_texts, is_published
from lpgnn_cli.data.download import check_digest, discard, download
from lpgnn_cli.data.storage import cache_folder, read_cached, read_embedded
from lpgnn_cli.data.tu import TuTables
from lpgnn_cli.errors import UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def data_folder(root: str | None) -> Path:
    """`data.root`, or $LPGNN_DATA, or the user's cache folder."""
    chosen = root or os.environ.get("LPGNN_DATA")
    return Path(chosen) if chosen else cache_folder() / "data"


def check_name(name: str) -> None:
    """Refuse what would be a path rather than a name."""
    if not NAME.fullmatch(name):
        raise UserError(
            f"dataset.name={name} is not the name of a dataset: it may have letters, digits, _, - "
            "and . only."
        )


def find_on_disk(name: str, folder: Path) -> Path | None:
    """The folder or the zip of a dataset, where there is one."""
    unpacked, zipped = folder / name, folder / f"{name}.zip"
    if (unpacked / f"{name}_A.txt").is_file():
        return unpacked
    return zipped if zipped.is_file() else None


def find_tables(config: TuConfig, data_root: str | None, *, targets: bool = True) -> TuTables:
    """The tables of a dataset from wherever it is; downloads it if it is nowhere.

    Where no `targets` are wanted, graphs of a user's own need not have any.
    """
    name = config.name
    check_name(name)
    if config.path is not None:
        return read_cached(read_files(Path(config.path).expanduser(), name, targets=targets))
    if config.embedded:
        return read_embedded(name)
    folder = data_folder(data_root).expanduser()
    path = find_on_disk(name, folder)
    if path is not None:
        if path.suffix == ".zip":
            check_digest(path)
        if is_published(name) or targets:
            return _read_published(path, name)
        return read_cached(read_files(path, name, targets=False))
    path = download(name, folder, ZIPS.get(name))
    try:
        check_texts(read_files(path, name))
        return _read_published(path, name)
    except UserError:
        discard(path)
        raise


def _read_published(path: Path, name: str) -> TuTables:
    tables = read_cached(read_files(path, name))
    check_counts(name, tables, str(path))
    return tables
