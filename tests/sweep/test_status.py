"""`lpgnn status`, and what cannot be left to a cluster; with a real one: `make test-slurm`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.sweeps import submitted
from lpgnn_cli.sweeps.jobs import Job, fail, state_of
from lpgnn_cli.sweeps.submitted import settle_lost


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "sweep.detach=true is for hydra/launcher=slurm"),
        (["hydra/launcher=slurm", "protocol=nested", "dataset=mutag"], "is for grids"),
    ],
)
def test_what_cannot_be_left_alone(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "dataset=karate", "seed=0,1", "sweep.detach=true", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_sweep_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "nobody"]) == 2
    assert "there is no sweep nobody" in capsys.readouterr().err


def test_jobs_that_slurm_lost_have_failed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is queued, one has failed by itself, and one left neither a result nor the queue."""
    jobs = [Job(number, f"{number}" * 20, (f"seed={number}",)) for number in range(3)]
    sweep = runs / "sweep" / "left"
    sweep.mkdir(parents=True)
    ids = {job.key: f"7_{job.number}" for job in jobs}
    (sweep / submitted.FILE).write_text(json.dumps(ids))
    fail(jobs[1], "error", "its own reason")
    monkeypatch.setattr(submitted, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(submitted, "queue", lambda ids: {"7_0"})
    settle_lost(sweep, jobs)
    states = [state_of(job.run) for job in jobs]
    assert states == [
        ("pending", ""),
        ("failed", "its own reason"),
        ("failed", "Slurm job 7_2 ended without a result"),
    ]
