"""Where a TU dataset comes from: the package, a path, the data folder, or the collection."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.data.archive import read_files
from lpgnn_cli.data.storage import cache_folder, read_cached, read_embedded
from lpgnn_cli.data.tu import TuTables
from lpgnn_cli.errors import UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def data_folder(root: str | None) -> Path:
    """`data.root`, or $LPGNN_DATA, or the user's cache folder."""
    chosen = root or os.environ.get("LPGNN_DATA")
    return Path(chosen) if chosen else cache_folder() / "data"


def find_tables(config: TuConfig, data_root: str | None) -> TuTables:
    name = config.name
    if not NAME.fullmatch(name):
        raise UserError(
            f"dataset.name={name} is not the name of a dataset: it may have letters, digits, _, - "
            "and . only."
        )
    if config.path is not None:
        return read_cached(read_files(Path(config.path), name))
    if config.embedded:
        return read_embedded(name)
    return read_cached(read_files(locate(name, data_folder(data_root)), name))


def locate(name: str, folder: Path) -> Path:
    for path in (folder / name, folder / f"{name}.zip"):
        if path.exists():
            return path
    raise UserError(f"{name} is not in {folder}.")
