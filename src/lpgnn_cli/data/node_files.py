"""Where a file of nodes is: at a path, in the data folder or beside it, or published."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lpgnn_cli.config.dataset import NodesConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.catalogue import CATALOGUE, Entry, refuse_other_counts
from lpgnn_cli.data.download import check_digest, fetch
from lpgnn_cli.data.sources import check_name, data_folder
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import ROC_AUC

# Platonov et al., A critical look at the evaluation of GNNs under heterophily, ICLR 2023.
BENCHMARK = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"


@dataclass(frozen=True)
class Published:
    """A file of the benchmark, and what it must be."""

    file: str
    sha256: str
    metric: str = ""


PUBLISHED = {
    "minesweeper": Published(
        "minesweeper.npz",
        "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3",
        metric=ROC_AUC.name,
    ),
    "chameleon": Published(
        "chameleon_filtered.npz", "bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5"
    ),
}

# Where files come from, as `lpgnn data` says it.
BY_HAND, DOWNLOAD = "a file", "Platonov et al."

CATALOGUE["cora"] = Entry(1, 2708, 10556, 7, "1,433 words", BY_HAND)
CATALOGUE["citeseer"] = Entry(1, 3327, 9104, 6, "3,703 words", BY_HAND)
CATALOGUE["minesweeper"] = Entry(1, 10000, 78804, 2, "7 indicators", DOWNLOAD)
CATALOGUE["chameleon"] = Entry(1, 890, 17708, 5, "2,325 words", DOWNLOAD)


def find_file(config: NodesConfig, data_root: str | None) -> Path:
    """The file of a dataset; downloads it where it is published and nowhere here."""
    if config.path is not None:
        return Path(config.path).expanduser()
    check_name(config.name)
    found = find_on_disk(config.name, data_root)
    if found is not None:
        check_digest(found)
        return found
    folder = places(data_root)[0]
    file, name = file_name(config.name), config.name
    if name not in PUBLISHED:
        raise UserError(
            f"{name} is not on disk: put {file} into {folder}, set LPGNN_DATA to a folder that has "
            "it, or set dataset.path; the docs say how such a file is made."
        )
    address = (os.environ.get("LPGNN_NODES_URL") or BENCHMARK).rstrip("/")
    return fetch(f"{address}/{file}", folder / file, name, sha256=PUBLISHED[name].sha256)


def find_on_disk(name: str, data_root: str | None) -> Path | None:
    files = (place / file_name(name) for place in places(data_root))
    return next((file for file in files if file.is_file()), None)


def file_name(name: str) -> str:
    return PUBLISHED[name].file if name in PUBLISHED else f"{name}.npz"


def places(data_root: str | None) -> list[Path]:
    """`node` in the data folder, the folder itself, and `node` beside it."""
    folder = data_folder(data_root).expanduser()
    return [folder / "node", folder, folder.absolute().parent / "node"]


def check_published(name: str, batch: GraphBatch, path: Path) -> None:
    """Refuse a file that has the name of a known dataset but not its numbers."""
    if name in CATALOGUE:
        found = {"nodes": batch.num_nodes, "arcs": batch.num_arcs, "classes": batch.num_classes}
        refuse_other_counts(CATALOGUE[name], name, found, str(path))
