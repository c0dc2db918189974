"""Downloads from a real server on this machine: once, whole, checked, and never a long wait."""

from __future__ import annotations

import functools
import gc
import hashlib
import http.server
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.data import download, load_dataset
from lpgnn_cli.data.catalogue import CATALOGUE, COLLECTION, TEXTS, ZIPS
from lpgnn_cli.errors import UserError

# pooch leaves closing the socket of a download that broke off to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

Write = Callable[..., Path]


class Mirror:
    """A server of the files in a folder that counts requests and can be told to misbehave."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[str] = []
        self.failures: list[str] = []
        handler = functools.partial(_Handler, self, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/sets"
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, mirror: Mirror, *args: Any, **kwargs: Any) -> None:
        self.mirror = mirror
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        self.mirror.requests.append(self.path)
        failure = self.mirror.failures.pop(0) if self.mirror.failures else ""
        if failure == "busy":
            self.send_error(503)
        elif failure == "breaks off":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"PK")
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    folder = tmp_path / "server"
    (folder / "sets").mkdir(parents=True)
    running = Mirror(folder)
    monkeypatch.setenv("LPGNN_TU_URL", running.url)
    yield running
    running.close()
    gc.collect()


@pytest.fixture
def root(tmp_path: Path, no_data_folder: None) -> Path:
    return tmp_path / "root"


@pytest.fixture
def by_name() -> Callable[[str], TuConfig]:
    def make(name: str) -> TuConfig:
        return TuConfig(
            name=name,
            features="auto",
            positional=0,
            sign_flips=True,
            path=None,
            embedded=False,
        )

    return make


@pytest.fixture
def served(write_tu: Write, tmp_path: Path, mirror: Mirror) -> Path:
    """TINY.zip on the server."""
    return write_tu(zipped=True).rename(tmp_path / "server" / "sets" / "TINY.zip")


def test_downloaded_once(
    served: Path, mirror: Mirror, root: Path, by_name: Callable[[str], TuConfig]
) -> None:
    first = load_dataset(by_name("TINY"), str(root), 0)
    assert first.batch.num_graphs == 4
    assert load_dataset(by_name("TINY"), str(root), 0).fingerprint() == first.fingerprint()
    assert mirror.requests == ["/sets/TINY.zip"]
    assert sorted(p.name for p in root.iterdir()) == ["TINY.zip", "TINY.zip.sha256"]
    expected = hashlib.sha256(served.read_bytes()).hexdigest()
    assert (root / "TINY.zip.sha256").read_text() == f"{expected}  TINY.zip\n"


def test_a_zip_with_a_pinned_hash(
    served: Path,
    root: Path,
    by_name: Callable[[str], TuConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ZIPS, "TINY", "0" * 64)
    with pytest.raises(UserError, match=r"is not the published TINY: its sha256 is .* not 0{12}"):
        load_dataset(by_name("TINY"), str(root), 0)
    assert list(root.iterdir()) == []
    monkeypatch.setitem(ZIPS, "TINY", hashlib.sha256(served.read_bytes()).hexdigest())
    assert load_dataset(by_name("TINY"), str(root), 0).batch.num_graphs == 4


def test_every_named_download_is_pinned() -> None:
    collected = {entry.tu_name for entry in CATALOGUE.values() if entry.source == COLLECTION}
    assert collected == {*TEXTS, *ZIPS} - {"MUTAG"}


def test_the_data_folder_by_default_and_by_variable(
    served: Path,
    mirror: Mirror,
    root: Path,
    fresh_cache: Path,
    by_name: Callable[[str], TuConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load_dataset(by_name("TINY"), None, 0)
    assert (fresh_cache / "data" / "TINY.zip").is_file()
    monkeypatch.setenv("LPGNN_DATA", str(root))
    load_dataset(by_name("TINY"), None, 0)
    assert (root / "TINY.zip").is_file()


def test_what_is_on_disk_is_not_downloaded(
    write_tu: Write, mirror: Mirror, tmp_path: Path, by_name: Callable[[str], TuConfig]
) -> None:
    for zipped in (True, False):
        write_tu(zipped=zipped)
        before = sorted(tmp_path.rglob("*"))
        assert load_dataset(by_name("TINY"), str(tmp_path), 0).batch.num_graphs == 4
        assert sorted(tmp_path.rglob("*")) == before, "the data folder may be read-only"
    assert mirror.requests == []


def test_a_terminal_sees_the_progress(
    served: Path,
    root: Path,
    by_name: Callable[[str], TuConfig],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert load_dataset(by_name("TINY"), str(root), 0).batch.num_graphs == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Downloading TINY" in captured.err


def test_a_changed_file_is_noticed(
    served: Path, root: Path, by_name: Callable[[str], TuConfig]
) -> None:
    load_dataset(by_name("TINY"), str(root), 0)
    with (root / "TINY.zip").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(UserError, match=r"TINY.zip has changed since it was downloaded"):
        load_dataset(by_name("TINY"), str(root), 0)


@pytest.mark.parametrize("failure", ["busy", "breaks off"])
def test_a_failure_is_tried_again(
    served: Path, mirror: Mirror, root: Path, by_name: Callable[[str], TuConfig], failure: str
) -> None:
    mirror.failures = [failure, failure]
    assert load_dataset(by_name("TINY"), str(root), 0).batch.num_graphs == 4
    assert len(mirror.requests) == 3


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [("busy", "answered with status 503"), ("breaks off", "The download of TINY broke off")],
)
def test_three_failures_are_enough(
    served: Path,
    mirror: Mirror,
    root: Path,
    by_name: Callable[[str], TuConfig],
    failure: str,
    sentence: str,
) -> None:
    mirror.failures = [failure] * 5
    with pytest.raises(UserError, match=sentence) as raised:
        load_dataset(by_name("TINY"), str(root), 0)
    assert f"{mirror.url}/TINY.zip into {root}" in str(raised.value)
    assert len(mirror.requests) == 3
    assert list(root.iterdir()) == [], "nothing half-done stays"


def test_a_dataset_that_the_collection_does_not_have(
    mirror: Mirror, root: Path, by_name: Callable[[str], TuConfig]
) -> None:
    with pytest.raises(UserError, match=r"There is no dataset BZR at .*/sets/BZR.zip"):
        load_dataset(by_name("BZR"), str(root), 0)
    assert len(mirror.requests) == 1


def test_a_download_that_is_no_dataset_is_not_kept(
    mirror: Mirror, tmp_path: Path, root: Path, by_name: Callable[[str], TuConfig]
) -> None:
    (tmp_path / "server" / "sets" / "BZR.zip").write_text("<html>sign in first</html>")
    with pytest.raises(UserError, match="is not a zip file or is damaged"):
        load_dataset(by_name("BZR"), str(root), 0)
    assert list(root.iterdir()) == []


def test_other_numbers_than_published_are_refused(
    write_tu: Write, root: Path, by_name: Callable[[str], TuConfig]
) -> None:
    root.mkdir()
    path = write_tu(zipped=True, name="NCI1").rename(root / "NCI1.zip")
    with pytest.raises(
        UserError, match=r"NCI1.zip is not the published NCI1: it has 4 graphs, not 4,110"
    ):
        load_dataset(by_name("NCI1"), str(root), 0)
    assert path.is_file()


def test_no_network(
    root: Path, by_name: Callable[[str], TuConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("LPGNN_TU_URL", f"http://127.0.0.1:{port}")
    sentence = (
        "NCI1 is not on disk and the network cannot be reached: put "
        f"http://127.0.0.1:{port}/NCI1.zip into {root} yourself"
    )
    with pytest.raises(UserError) as raised:
        load_dataset(by_name("NCI1"), str(root), 0)
    assert str(raised.value).startswith(sentence)


def test_a_network_that_swallows_everything_is_not_waited_for(
    root: Path, by_name: Callable[[str], TuConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    def swallow(*_: object, **__: object) -> None:
        time.sleep(2.5)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", swallow)
    start = time.monotonic()
    with pytest.raises(UserError, match="the network cannot be reached"):
        load_dataset(by_name("NCI1"), str(root), 0)
    assert time.monotonic() - start < 2.0


def test_an_address_that_is_none(
    root: Path, by_name: Callable[[str], TuConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_TU_URL", "mirror/sets")
    with pytest.raises(UserError, match="is not a web address: correct LPGNN_TU_URL"):
        load_dataset(by_name("NCI1"), str(root), 0)


def test_a_folder_that_cannot_be_made(tmp_path: Path, by_name: Callable[[str], TuConfig]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be made \(.*\): set data.root="):
        load_dataset(by_name("NCI1"), str(tmp_path / "file" / "root"), 0)


def test_the_default_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPGNN_TU_URL", raising=False)
    url = "https://www.chrsmrrs.com/graphkerneldatasets/PTC_MR.zip"
    assert download.dataset_url("PTC_MR") == url
