"""Getting a dataset from the TUDataset collection, once."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.errors import UserError

COLLECTION = "https://www.chrsmrrs.com/graphkerneldatasets"

# Without a network a name lookup or a connection may hang for minutes: this long is waited.
CONNECT_SECONDS = 1.5
READ_SECONDS = 30.0
ATTEMPTS = 3


def dataset_url(name: str) -> str:
    """Where a dataset is; $LPGNN_TU_URL names a mirror of the collection."""
    return f"{(os.environ.get('LPGNN_TU_URL') or COLLECTION).rstrip('/')}/{name}.zip"


def download(name: str, folder: Path, sha256: str | None = None) -> Path:
    """Fetch NAME.zip of the collection into the folder."""
    return fetch(dataset_url(name), folder / f"{name}.zip", name, sha256)


def fetch(url: str, path: Path, name: str, sha256: str | None = None) -> Path:
    """Fetch a file, whole or not at all, and remember its sha256 beside it; `sha256` is the one
    that it must have, where that is known."""
    import pooch
    import requests

    folder = path.parent
    advice = f"put {url} into {folder} yourself, or set LPGNN_DATA to a folder that has it"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}): set data.root=.") from error
    if not reachable(url):
        raise UserError(f"{name} is not on disk and the network cannot be reached: {advice}.")
    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(
        progressbar=_ProgressBar(name) if sys.stderr.isatty() else False,
        timeout=(READ_SECONDS, READ_SECONDS),
    )
    for attempt in range(1, ATTEMPTS + 1):
        try:
            pooch.retrieve(
                url, known_hash=None, fname=path.name, path=folder, downloader=downloader
            )
            break
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status == 404:
                raise UserError(
                    f"There is no dataset {name} at {url}: check dataset.name, or set dataset.path."
                ) from error
            if attempt == ATTEMPTS or status < 500:
                raise UserError(f"{url} answered with status {status}: {advice}.") from error
        except requests.RequestException as error:
            if attempt == ATTEMPTS:
                raise UserError(f"The download of {name} broke off: {advice}.") from error
        except OSError as error:
            raise _unwritable(path, error) from error
    found = file_digest(path)
    if sha256 not in (None, found):
        discard(path)
        raise UserError(
            f"{url} is not the published {name}: its sha256 is {found[:12]}..., not "
            f"{sha256[:12]}...; nothing was kept. Check the address, or get the file yourself."
        )
    try:
        write_atomically(digest_path(path), f"{found}  {path.name}\n")
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path} cannot be written ({error.strerror}): set data.root=.")


def check_digest(path: Path) -> None:
    """A zip that was downloaded here must still be what it was."""
    remembered = digest_path(path)
    if not remembered.is_file():
        return
    words = remembered.read_text(encoding="utf-8").split()
    if words[:1] != [file_digest(path)]:
        raise UserError(
            f"{path} has changed since it was downloaded, its sha256 is not that in "
            f"{remembered.name}: delete both to get it again."
        )


def discard(path: Path) -> None:
    """Forget a download that turned out not to be the dataset."""
    path.unlink(missing_ok=True)
    digest_path(path).unlink(missing_ok=True)


def digest_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def reachable(url: str) -> bool:
    """Whether a connection to the server (or the proxy before it) comes about in time.

    In a thread, since looking up a name cannot be given a time limit.
    """
    from requests.utils import get_environ_proxies, select_proxy

    server = urlsplit(select_proxy(url, get_environ_proxies(url)) or url)
    if server.hostname is None:
        raise UserError(f"{url} is not a web address: correct LPGNN_TU_URL.")
    address = (server.hostname, server.port or (443 if server.scheme == "https" else 80))
    connected = threading.Event()

    def connect() -> None:
        try:
            socket.create_connection(address, timeout=CONNECT_SECONDS).close()
            connected.set()
        except OSError:
            pass

    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(CONNECT_SECONDS)
    return connected.is_set()


class _ProgressBar:
    """What pooch asks of a progress bar, shown by rich."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(f"Downloading {name}", total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.start()
        # A server that does not tell the size is said to send 0 bytes.
        self._progress.update(self._task, total=size or None)

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        self._progress.stop()
