"""The public folds of CSL and ENZYMES: those of Dwivedi et al., Benchmarking GNNs, 2020."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.data.download import CONNECT_SECONDS, READ_SECONDS, reachable
from lpgnn_cli.data.sources import data_folder
from lpgnn_cli.errors import UserError

PUBLIC = "public"
SOURCE = "https://raw.githubusercontent.com/graphdeeplearning/benchmarking-gnns/master/data"
PARTS = ("train", "val", "test")
FOLDERS = {"CSL": "CSL", "ENZYMES": "TUs"}
# sha256 of the lines of the three files, whatever ends a line.
DIGESTS = {
    "CSL": "5bdfb30f67beff46dd47dc4f078651db1182ac67de53d2df67c322adf1f17721",
    "ENZYMES": "ad6db94b28315ea585e58dfb9a950a9946d549a17a44e4d368b68daa658a00e1",
}


def public_splits(dataset: str) -> Path:
    """The folder with the index files: $LPGNN_SPLITS, or `splits` in the data folder or beside it.

    What is not there is downloaded; folds other than the public ones are refused.
    """
    name = dataset.upper()
    if name not in FOLDERS:
        raise UserError(
            f"there are no public splits of {dataset}, only of {' and '.join(FOLDERS)}: "
            "set protocol.splits to a folder, or to null."
        )
    places = split_folders()
    found = [place for place in places if all(path.is_file() for path in _paths(place, name))]
    folder = found[0] if found else places[0]
    if not found:
        _download(folder, name)
    texts = [path.read_text(encoding="utf-8") for path in _paths(folder, name)]
    if digest(texts) != DIGESTS[name]:
        raise UserError(
            f"{folder} has other folds of {name} than the public ones: delete its index files, "
            f"or use them by protocol.splits={folder}."
        )
    return folder


def split_folders() -> list[Path]:
    """Where folds that others have published may be, the preferred place first."""
    chosen = os.environ.get("LPGNN_SPLITS")
    data = data_folder(None)
    return [Path(chosen)] if chosen else [data / "splits", data.absolute().parent / "splits"]


def digest(texts: list[str]) -> str:
    lines = ("\n".join(text.split()) + "\n" for text in texts)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _paths(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}_{part}.index" for part in PARTS]


def _download(folder: Path, name: str) -> None:
    import requests

    urls = [f"{SOURCE}/{FOLDERS[name]}/{path.name}" for path in _paths(folder, name)]
    advice = (
        f"put {name}_train.index, {name}_val.index and {name}_test.index of {SOURCE}/"
        f"{FOLDERS[name]} into {folder}, or set LPGNN_SPLITS to a folder that has them"
    )
    if not reachable(urls[0]):
        raise UserError(
            f"the public splits of {name} are not on disk and the network cannot be reached: "
            f"{advice}."
        )
    try:
        answers = [requests.get(url, timeout=(CONNECT_SECONDS, READ_SECONDS)) for url in urls]
        for answer in answers:
            answer.raise_for_status()
        folder.mkdir(parents=True, exist_ok=True)
        for path, answer in zip(_paths(folder, name), answers, strict=True):
            write_atomically(path, answer.text)
    except (requests.RequestException, OSError) as error:
        failure = f"the public splits of {name} could not be downloaded"
        raise UserError(f"{failure}: {advice}.") from error
