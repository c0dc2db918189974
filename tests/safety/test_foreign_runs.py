"""A run folder, a checkpoint or a server of somebody else: data that is checked, never believed."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import lpgnn_cli.api as api
from lpgnn_cli.cli import main
from lpgnn_cli.errors import UserError
from lpgnn_cli.names import as_name, checked_name
from lpgnn_cli.runfolder import RunFolder, Unit
from lpgnn_cli.tracking import fetch
from lpgnn_cli.training.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from lpgnn_cli.training.scoring import TrainedUnit

from .conftest import KFOLD, SMALL, SOBER, Lpgnn, files_in, one_sentence

SECRET = "hunter2-of-the-environment"
STEAL = "${oc.env:LPGNN_TEST_SECRET}"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPGNN_TEST_SECRET", SECRET)


def edit_yaml(path: Path, key: str, value: Any) -> None:
    config = yaml.safe_load(path.read_text())
    *groups, leaf = key.split(".")
    node = config
    for group in groups:
        node = node[group]
    node[leaf] = value
    path.write_text(yaml.safe_dump(config))


def edit_checkpoint(path: Path, *keys: str, value: Any) -> None:
    content = load_checkpoint(path)
    node = content
    for key in keys[:-1]:
        node = node[key]
    node[keys[-1]] = value
    content.pop("format")
    save_checkpoint(path, content)


# Interpolations.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tracking", {"name": "mlflow", "uri": f"http://127.0.0.1:9/{STEAL}", "experiment": "x"}),
        ("name", STEAL),
        ("data.root", STEAL),
        ("state", [STEAL]),
        ("dataset.name", "${oc.decode:${oc.env:LPGNN_TEST_SECRET}}"),
        ("seed", "${epochs}"),
    ],
)
def test_a_foreign_config_is_never_interpolated(
    key: str, value: Any, run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_yaml(run.config_path, key, value)
    before = files_in(run.path)
    assert main(["train", f"resume={run.path}", "epochs=4"]) == 2
    said = capsys.readouterr()
    assert one_sentence(said.err, about="nothing in a stored config is interpolated")
    assert SECRET not in said.err + said.out
    assert files_in(run.path) - before <= {run.lock_path}
    assert main(["runs"]) == 0
    assert SECRET not in "".join(capsys.readouterr())


def test_a_foreign_checkpoint_is_never_interpolated(
    run: RunFolder, capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    file = run.unit("fold-00") / "last.pt"
    edit_checkpoint(file, "config", "name", value=STEAL)
    assert main(["eval", f"run={file}", "tracking=none"]) == 2
    said = capsys.readouterr()
    assert one_sentence(said.err, about="nothing in a stored config is interpolated")
    assert not runs.exists()
    with pytest.raises(UserError, match="nothing in a stored config is interpolated"):
        api.load(file)


def test_a_sweep_folder_is_read_without_interpolation(run: RunFolder) -> None:
    edit_yaml(run.config_path, "sweep", {"metric": STEAL})
    assert SECRET not in repr(api.Sweep(run.path).metric)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x\n",
        "a: " + "[" * 5_000,
        "a: " + "[" * 1_000_000,  # which the parser in C would not survive
        "- " * 1_000_000,
        "a: !!python/object/apply:os.system ['touch /tmp/owned']",
        "\x00",
        "just text",
        "a: 1e999999999999\nb: " + "9" * 5000,
    ],
    ids=["alias", "deep", "deeper", "list", "object", "binary", "text", "number"],
)
def test_hostile_yaml_costs_a_sentence(
    text: str, run: RunFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run.config_path.write_text(text)
    assert main(["train", f"resume={run.path}"]) == 2
    assert one_sentence(capsys.readouterr().err)
    monkeypatch.setenv("LPGNN_RUNS", str(run.path.parent))
    assert main(["runs"]) == 0


# Names that become paths.


@pytest.mark.parametrize(
    "name", ["/abs", "../up", "a/b", "..", ".hidden", "", "a\\b", "x" * 300, "a\nb", "a\0b", 7]
)
def test_names_that_lead_elsewhere_are_refused(name: Any) -> None:
    with pytest.raises(UserError, match="cannot name a folder"):
        checked_name("name", name)
    with pytest.raises(UserError, match="cannot name a folder"):
        Unit(name, 0, 0)
    with pytest.raises(UserError, match="cannot name a folder"):
        RunFolder(Path("x")).unit(name)
    assert checked_name("name", as_name(str(name)))


@pytest.mark.parametrize("name", ["/tmp/lpgnn-owned", "../../owned", "a/b"])
def test_a_foreign_unit_never_names_a_path(
    name: str, run: RunFolder, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = run.unit("fold-00") / "last.pt"
    edit_checkpoint(file, "unit", "name", value=name)
    before = files_in(tmp_path)
    assert main(["eval", f"run={file}", "tracking=none"]) == 2
    assert one_sentence(capsys.readouterr().err, about="cannot name a folder")
    raw = json.loads(run.record_path.read_text())
    raw["units"][0]["name"] = name
    run.record_path.write_text(json.dumps(raw))
    for words in (["eval", f"run={run.path}"], ["train", f"resume={run.path}"]):
        assert main(words) == 2
        assert one_sentence(capsys.readouterr().err, about="cannot name a folder")
    assert files_in(tmp_path) - before <= {run.lock_path}
    assert not Path(name).exists()


@pytest.mark.parametrize("command", ["train", "eval", "sweep"])
def test_a_name_with_a_slash_is_refused(
    command: str, run: RunFolder, capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    words = {
        "train": [*SOBER, *SMALL, "name=a/b"],
        "eval": [f"run={run.path}", "name=../b"],
        "sweep": [*SMALL, "seed=1,2", "tracking=none", "sweep.name=a/b"],
    }[command]
    assert main([command, *words]) == 2
    assert one_sentence(capsys.readouterr().err, about="cannot name a folder")
    assert not runs.exists()


class Server:
    """An MLflow client whose server is hostile."""

    def __init__(self, tags: dict[str, dict[str, str]], artifacts: list[str]) -> None:
        self.tags, self.artifacts = tags, artifacts
        self.written: list[Path] = []

    def get_run(self, run_id: str) -> Any:
        info = type("Info", (), {"run_id": run_id, "experiment_id": "0"})
        return type("Run", (), {"data": type("D", (), {"tags": self.tags[run_id]}), "info": info})

    def search_runs(self, *_: object, **__: object) -> list[Any]:
        return [self.get_run(run_id) for run_id in self.tags]

    def list_artifacts(self, run_id: str) -> list[Any]:
        return [type("Item", (), {"path": name, "is_dir": False}) for name in self.artifacts]

    def download_artifacts(self, run_id: str, name: str, into: str) -> None:
        path = Path(into) / name
        path.write_text("from the server")
        self.written.append(path.resolve())


def test_a_server_does_not_say_what_is_written_where(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(tmp_path / "fetched"))
    (tmp_path / "fetched").mkdir()
    parent = {"lpgnn.run_id": "r", "folder": str(run.path)}
    child = {"lpgnn.run_id": "r", "lpgnn.unit": "../../../owned", "mlflow.parentRunId": "0" * 32}
    server = Server(
        {"0" * 32: parent, "1" * 32: child}, ["run.json", "../owned", "/tmp/owned", "last.pt"]
    )
    monkeypatch.setattr(fetch, "open_client", lambda uri: server)
    # The folder that the server names is somebody else's run, so it is not taken for this one.
    with pytest.raises(UserError, match="cannot name a folder"):
        fetch.fetch_run("0" * 32, None)
    assert server.written == [tmp_path / "fetched" / "run.json"]
    child["lpgnn.unit"] = "fold-00"
    folder, _ = fetch.fetch_run("0" * 32, None)
    assert folder == tmp_path / "fetched"
    assert all(path.is_relative_to(folder) for path in server.written)


# What is neither a file nor a folder.


@pytest.mark.parametrize("place", ["units", "units/fold-00", ".lock", "units/fold-00/metrics.csv"])
def test_a_link_out_of_a_run_folder_is_not_followed(
    place: str, run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path / "elsewhere" / "there"
    outside.parent.mkdir()
    shutil.move(run.path / place, outside)
    (run.path / place).symlink_to(outside)
    before = {path: path.stat().st_mtime_ns for path in outside.parent.rglob("*")}
    for words in (["train", f"resume={run.path}", "epochs=4"], ["eval", f"run={run.path}"]):
        assert main(words) == 2
        assert one_sentence(capsys.readouterr().err, about=f"its {place} is a link")
    assert main(["sync", str(run.path)]) == 2
    assert {path: path.stat().st_mtime_ns for path in outside.parent.rglob("*")} == before


def test_a_sweep_keeps_the_links_to_its_jobs(run: RunFolder, tmp_path: Path) -> None:
    (run.path / "jobs").mkdir()
    (run.path / "jobs" / "0000-seed=0").symlink_to(tmp_path)
    assert RunFolder.open(run.path).read_record().units


@pytest.mark.parametrize("place", ["run.json", "config.yaml", ".lock", "units/fold-00/last.pt"])
def test_nobody_waits_for_a_pipe_in_a_run_folder(
    place: str, run: RunFolder, runs: Path, lpgnn: Lpgnn
) -> None:
    runs.mkdir()
    foreign = Path(shutil.move(run.path, runs / "foreign"))
    (foreign / place).unlink()
    os.mkfifo(foreign / place)
    for words in (["runs"], ["sync", str(foreign)]):
        process = lpgnn(*words)
        _, said = process.communicate(timeout=60)
        assert "Traceback" not in said
        assert process.returncode == (2 if words[0] == "sync" else 0)


# Checkpoints, whole or not at all.


def test_no_bit_of_a_checkpoint_changes_unnoticed(run: RunFolder) -> None:
    file = run.unit("fold-00") / "last.pt"
    whole = file.read_bytes()
    load_checkpoint(file)
    chance = random.Random(0)
    positions = [chance.randrange(8 * len(whole)) for _ in range(300)]
    # And all of the end, where the sum itself is.
    positions += range(8 * (len(whole) - 100), 8 * len(whole))
    for position in positions:
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        file.write_bytes(damaged)
        with pytest.raises(UserError):
            load_checkpoint(file)
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 73, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(UserError):
            load_checkpoint(file)
    file.write_bytes(whole + b"\0")
    with pytest.raises(UserError):
        load_checkpoint(file)


def test_checkpoints_of_before_are_read_if_their_own_sums_are_right(tmp_path: Path) -> None:
    file = tmp_path / "old.pt"
    torch.save({"format": 2, "weights": torch.arange(1000)}, file)
    assert torch.equal(load_checkpoint(file)["weights"], torch.arange(1000))
    data = bytearray(file.read_bytes())
    data[data.index(torch.arange(1000).numpy().tobytes()) + 4000] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match="is damaged"):
        load_checkpoint(file)
    # One of today's whose sum was taken away is not one of those.
    torch.save({"format": FORMAT, "weights": torch.arange(3)}, file)
    with pytest.raises(UserError, match="does not have the sha256"):
        load_checkpoint(file)


def test_the_checkpoint_of_another_fold_is_refused(
    run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(run.unit("fold-01") / "last.pt", run.unit("fold-00") / "last.pt")
    assert main(["eval", f"run={run.path}", "tracking=none"]) == 2
    assert one_sentence(capsys.readouterr().err, about="is the checkpoint of fold-01, not of fold-")
    assert main(["train", f"resume={run.path}", "epochs=4", "quiet=true"]) == 1
    assert "is the checkpoint of something else: its unit is" in capsys.readouterr().err
    result = run.read_result("fold-00")
    assert result is not None
    assert result.state == "failed"


def test_a_damaged_checkpoint_stops_a_resumed_run_in_a_sentence(
    run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run.unit("fold-00") / "last.pt"
    file.write_bytes(file.read_bytes()[:-200])
    assert main(["train", f"resume={run.path}", "epochs=4", "quiet=true"]) == 1
    assert one_sentence(capsys.readouterr().err, about="is not a checkpoint that can be read")


@pytest.mark.parametrize("key", ["config", "unit", "progress", "shape", "scaler", "propagation"])
def test_a_checkpoint_that_holds_something_else_costs_a_sentence(key: str, run: RunFolder) -> None:
    file = run.unit("fold-00") / "last.pt"
    values: list[object] = [None, 7, {}, [], "text", {"network": {}}]
    for value in values:
        edit_checkpoint(file, key, value=value)
        with pytest.raises(UserError):
            TrainedUnit(file, None, torch.device("cpu")).rescore(None)


def test_metrics_that_are_missing_are_not_made_up(
    run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    file = run.unit("fold-00") / "metrics.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
    assert main(["train", f"resume={run.path}", "epochs=4", "quiet=true"]) == 1
    assert one_sentence(capsys.readouterr().err, about="it has 1 of the 3 epochs")


def test_the_same_words_train_what_they_trained(run: RunFolder, runs: Path) -> None:
    """The copy that all these tests damage is a run like any other."""
    assert main(["train", f"resume={run.path}", "epochs=5", "quiet=true"]) == 0
    assert main(["train", *SOBER, *SMALL, *KFOLD, "epochs=5"]) == 0
    (whole,) = runs.glob("train/*/*/run.json")
    for unit in ("fold-00", "fold-01"):
        ours, theirs = (RunFolder(p).read_metrics(unit) for p in (run.path, whole.parent))
        for mine, other in zip(ours, theirs, strict=True):
            assert {**mine, "time": 0} == {**other, "time": 0}
