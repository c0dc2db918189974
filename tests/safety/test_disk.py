"""Disks that are full, read-only or gone: one sentence, a true state, and a way on."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.runfolder import FINISHED, RUNNING, RunFolder
from lpgnn_cli.training import checkpoint, fit

from .conftest import SMALL, SOBER, Lpgnn, one_sentence


def only_run(runs: Path) -> RunFolder:
    (record,) = runs.glob("train/*/*/run.json")
    return RunFolder(record.parent)


def temporaries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file() and path.name != ".lock"]


@pytest.mark.parametrize("place", ["runs", "runs/train"])
def test_a_file_where_the_runs_should_be(
    place: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs.parent / place).parent.mkdir(exist_ok=True)
    (runs.parent / place).write_text("a file")
    assert main(["train", *SOBER, *SMALL, "epochs=1"]) == 2
    assert one_sentence(capsys.readouterr().err, about="set LPGNN_RUNS to a folder that can be")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root may mount a disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_and_then_space_again(
    workers: int,
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(small_disk))
    words = [*SMALL, "quiet=true", "tracking=none", "figures=false", "checkpoint_every=1"]
    words += ["protocol.seeds=2", f"protocol.workers={workers}", "protocol.patience=99999"]
    (small_disk / "ballast").write_bytes(b"x" * (1800 << 10))
    assert main(["train", *words, "epochs=3000"]) == 1
    said = capfd.readouterr().err
    assert one_sentence(said, about="No space left on device")
    run = only_run(small_disk)
    assert f"go on with `lpgnn train resume={run.path}`" in said
    assert run.actual_state(run.read_record()) != RUNNING
    assert temporaries(run.path) == []
    (small_disk / "ballast").unlink()
    epochs = max(len(run.read_metrics(unit.name)) for unit in run.read_record().units) + 2
    assert main(["train", f"resume={run.path}", f"epochs={epochs}", "quiet=true"]) == 0
    assert run.read_record().state == FINISHED
    for unit in run.read_record().units:
        assert [row["epoch"] for row in run.read_metrics(unit.name)] == [*range(1, epochs + 1)]


def test_a_disk_that_is_read_only(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(small_disk))
    words = [*SMALL, "quiet=true", "tracking=none", "figures=false", "protocol.workers=1"]
    assert main(["train", *words, "epochs=1"]) == 0
    run = only_run(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    capsys.readouterr()
    assert main(["train", *words, "epochs=1"]) == 2
    assert one_sentence(capsys.readouterr().err, about="Read-only file system")
    assert main(["train", f"resume={run.path}", "epochs=2"]) == 1
    assert one_sentence(capsys.readouterr().err, about="Read-only file system")
    assert main(["runs"]) == 0


def test_a_limit_on_the_size_of_files(lpgnn: Lpgnn, runs: Path) -> None:
    """What a quota does, where nobody may mount: checkpoints do not fit."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, 8 << 10))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    process = lpgnn("train", *SOBER, *SMALL, "epochs=9", "checkpoint_every=2", preexec_fn=limit)
    _, said = process.communicate(timeout=400)
    assert process.returncode == 1
    assert one_sentence(said, about="File too large")
    run = only_run(runs)
    assert run.actual_state(run.read_record()) != RUNNING
    assert temporaries(run.path) == []
    assert main(["train", f"resume={run.path}", "quiet=true"]) == 0
    assert len(run.read_metrics("fold-00")) == 9


def test_a_folder_that_is_removed_under_its_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def remove(path: Path, content: dict[str, object]) -> None:
        shutil.rmtree(runs, ignore_errors=True)
        checkpoint.save_checkpoint(path, content)

    monkeypatch.setattr(fit, "save_checkpoint", remove)
    assert main(["train", *SOBER, *SMALL, "epochs=9", "checkpoint_every=3"]) == 1
    assert one_sentence(capsys.readouterr().err, about="was removed while the run was going on")
    assert not list(runs.rglob("*.pt"))


def test_what_killed_writers_left_is_removed(run: RunFolder) -> None:
    left = run.unit("fold-00") / ".last.pt.12345"
    left.write_bytes(b"half a checkpoint")
    assert main(["train", f"resume={run.path}", "epochs=4", "quiet=true"]) == 0
    assert not left.exists()


def test_output_that_goes_nowhere(lpgnn: Lpgnn) -> None:
    with open("/dev/full", "w") as full:
        process = subprocess.Popen(
            [sys.executable, "-m", "lpgnn_cli", "train", *SOBER, *SMALL, "epochs=1"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
        _, said = process.communicate(timeout=400)
    assert process.returncode == 1
    assert one_sentence(said, about="No space left on device")
