"""Stores and run folders that are garbage, foreign, locked or not there; names with markup."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.runfolder import RunFolder

from .conftest import SMALL, Lpgnn, files_in, one_sentence

SLOW = pytest.mark.slow


def make_store(kind: str, folder: Path) -> str:
    database = folder / "store.db"
    if kind == "garbage":
        database.write_bytes(b"this is no database" * 1000)
    elif kind == "foreign":
        with sqlite3.connect(database) as connection:
            connection.execute("CREATE TABLE invoices (id INTEGER)")
    elif kind == "folder":
        (folder / "notes").mkdir()
        (folder / "notes" / "todo.txt").write_text("no store")
        return str(folder / "notes")
    elif kind == "nobody":
        return "http://127.0.0.1:9"
    elif kind == "unknown":
        return "gopher://host/x"
    return f"sqlite:///{database}"


@pytest.mark.parametrize("kind", ["garbage", "foreign", "folder", "nobody", "unknown"])
def test_a_store_that_is_none_is_named_in_a_sentence(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = make_store(kind, tmp_path)
    before = files_in(tmp_path)
    started = time.monotonic()
    assert main(["runs", "--store", uri]) == 2
    assert one_sentence(capsys.readouterr().err)
    if kind in ("garbage", "foreign", "folder"):
        assert main(["ui", "--uri", uri]) == 2
        assert one_sentence(capsys.readouterr().err, about="is not an MLflow store")
    assert main(["eval", f"run={'0' * 32}", f"tracking.uri={uri}"]) == 2
    assert time.monotonic() - started < 120  # importing mlflow alone takes its time
    assert files_in(tmp_path) - before == set()


@pytest.mark.parametrize("kind", ["garbage", pytest.param("locked", marks=SLOW), "nobody"])
def test_training_waits_half_a_minute_at_most(
    kind: str, tmp_path: Path, lpgnn: Lpgnn, runs: Path
) -> None:
    uri = make_store(kind, tmp_path)
    if kind == "locked":
        with sqlite3.connect(tmp_path / "store.db") as connection:
            connection.execute("CREATE TABLE experiments (id INTEGER)")
        holder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
    words = [*SMALL, "quiet=true", "figures=false", "protocol.workers=1", "epochs=1"]
    process = lpgnn("train", *words, f"tracking.uri={uri}")
    _, said = process.communicate(timeout=400)
    assert process.returncode == 0, said
    (record,) = runs.glob("train/*/*/run.json")
    ended = json.loads(record.read_text())["ended"]
    assert time.time() - ended < 90  # 20 of waiting, and a busy machine
    assert "Traceback" not in said
    assert said.count("does not have all of this run") == 1, said
    assert RunFolder(record.parent).read_record().state == "finished"


BROKEN = {
    "run.json": ["", "{", "[]", "null", '{"id": 1}', '"text"', "[" * 100_000, "\x00"],
    "config.yaml": ["[", "a: *b", "&a [*a]", "!!python/object:os.system {}", "text", "- 1"],
    "summary.json": ["[]", "{", '{"honest/accuracy_mean": 1' + "0" * 400 + "}", "7"],
    "tracking.json": ["[]", "{}", '{"uri": 1, "experiment": 2}', "{"],
}


def test_no_broken_folder_takes_the_others_down(
    trained: Path, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained, runs / "train" / "good")
    for name, texts in BROKEN.items():
        for number, text in enumerate(texts):
            folder = Path(shutil.copytree(trained, runs / "train" / f"bad-{number}-{name}"))
            (folder / name).write_text(text)
    record = json.loads((runs / "train" / "good" / "run.json").read_text())
    odd: list[dict[str, object]] = [{"started": 1e300}, {"started": "x"}]
    odd += [{"units": [{"name": "../x"}]}, {"state": "hm"}]
    for number, change in enumerate(odd):
        folder = Path(shutil.copytree(trained, runs / "train" / f"odd-{number}"))
        (folder / "run.json").write_text(json.dumps({**record, **change}))
    for words in (["runs"], ["runs", "--json"], ["runs", "--csv"], ["runs", "layers=1"]):
        assert main(words) == 0
        said = capsys.readouterr()
        assert "good" in said.out
        assert "bad-0-run.json has files that cannot be read; left out." in said.err
        assert "Traceback" not in said.err


def test_names_are_shown_as_text(
    trained: Path, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(trained, runs / "train" / "[red]folder[/red] :smile:"))
    config = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(
        config.replace("name: clique", 'name: "[bold]clique[/] \\e[2J"')
    )
    assert main(["runs"]) == 0
    said = capsys.readouterr().out
    assert "[red]folder[/red] :smile:" in said
    assert "[bold]clique[/] ?[2J" in said
    assert "\x1b[2J" not in said
