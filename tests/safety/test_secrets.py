"""Names and passwords in the address of a store: sent to it, stored and shown nowhere."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.credentials import keep, keep_in_words, redact, restore
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.training.checkpoint import load_checkpoint

from .conftest import SMALL, Lpgnn

PASSWORD = "s3cret-hunter2"
WORDS = [word for word in SMALL if word != "tracking=none"]


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """One that knows nothing of MLflow; its address, and what came with the requests."""
    came: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.append(self.headers.get("Authorization", ""))
            self.send_error(500)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None: ...

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{http.server_port}", came
    http.shutdown()
    http.server_close()


def holds_secret(folder: Path) -> list[Path]:
    """Also inside of checkpoints, whose texts are stored as they are."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if PASSWORD.encode() in path.read_bytes()]


def test_a_password_is_sent_and_kept_nowhere(
    server: tuple[str, list[str]], lpgnn: Lpgnn, tmp_path: Path, runs: Path
) -> None:
    address, came = server
    uri = f"http://ann:{PASSWORD}@{address}"
    basic = "Basic " + base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    words = [*WORDS, "figures=false", "protocol.workers=1", "epochs=2"]
    process = lpgnn("train", *words, f"tracking.uri={uri}")
    said = "".join(process.communicate(timeout=400))
    assert process.returncode == 0, said
    assert f"MLflow at http://{address}" in said
    assert PASSWORD not in said
    assert set(came) == {basic}
    assert holds_secret(tmp_path) == []
    (record,) = runs.glob("train/*/*/run.json")
    run = RunFolder(record.parent)
    assert f"tracking.uri=http://{address}" in run.read_record().argv
    content = load_checkpoint(run.unit("fold-00") / "last.pt")
    assert content["config"]["tracking"]["uri"] == f"http://{address}"

    # A resumed run takes it from the environment again.
    came.clear()
    process = lpgnn("train", f"resume={run.path}", "epochs=3", extra={"MLFLOW_TRACKING_URI": uri})
    said = "".join(process.communicate(timeout=400))
    assert process.returncode == 0, said
    assert set(came) == {basic}
    for words in (["sync", str(run.path)], ["doctor"], ["runs", "--store", uri], ["ui"]):
        process = lpgnn(*words, extra={"MLFLOW_TRACKING_URI": uri})
        said = "".join(process.communicate(timeout=400))
        assert PASSWORD not in said
        assert "Traceback" not in said
    assert holds_secret(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"http://ann:{PASSWORD}@host/x", "http://host/x"),
        (f"https://{PASSWORD}@host", "https://host"),
        (f"http://ann:a@b{PASSWORD}@host", "http://host"),
        (f"postgresql+psycopg2://ann:{PASSWORD}@host:5/db", "postgresql+psycopg2://host:5/db"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        (f"mysql://host/db?user=a&password={PASSWORD}&x=1", "mysql://host/db?user=a&password=&x=1"),
        ("sqlite:////tmp/a@b.db", "sqlite:////tmp/a@b.db"),
        (f"cannot reach 'http://ann:{PASSWORD}@host': no", "cannot reach 'http://host': no"),
    ],
)
def test_what_is_shown_of_an_address(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert redact(text) == shown
    assert redact(shown) == shown
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    if text != shown and " " not in text:
        assert keep_in_words([f"tracking.uri={text}"]) == [f"tracking.uri={shown}"]
        assert os.environ["MLFLOW_TRACKING_URI"] == text
        assert keep(shown) == shown
        assert restore(shown) == (shown if shown.startswith("http") else text)
        assert restore("http://another") == "http://another"
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


def test_a_password_in_a_file_of_settings(
    tmp_path: Path, runs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN_STORE", f"http://ann:{PASSWORD}@127.0.0.1:9")
    words = [*WORDS, "figures=false", "protocol.workers=1", "epochs=1"]
    assert main(["train", *words, "tracking.uri=${oc.env:OWN_STORE}"]) == 0
    assert PASSWORD not in "".join(capfd.readouterr())
    assert holds_secret(runs) == []
