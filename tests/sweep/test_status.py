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
    assert main(["sweep", "dataset=karate", "lr.theta=0.1,1", "sweep.detach=true", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_sample_stays_one_of_all_combinations(runs: Path) -> None:
    words = ["dataset=karate", "tracking=none", "figures=false", "epochs=1", "quiet=true"]
    sampled = ["seed=range(3)", "sweep.sample=1", "sweep.name=few", "hydra/launcher=basic"]
    assert main(["sweep", *words, *sampled]) == 0
    summary = (runs / "sweep" / "few" / "summary.json").read_text()
    assert json.loads(summary)["combinations"] == 3
    assert main(["status", "few"]) == 0
    assert (runs / "sweep" / "few" / "summary.json").read_text() == summary


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("resume=runs/train/some", "resume= is for lpgnn train"),
        ("sweep.metric=accuracy", "sweep.metric=accuracy: no run reports that"),
        ("sweep.metric=inference/gian_mean", "such as honest/accuracy_mean"),
    ],
)
def test_what_is_not_for_sweeps_is_refused_before_any_job(
    word: str, sentence: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "dataset=karate", "seed=0,1", word]) == 2
    assert sentence in capsys.readouterr().err
    assert not any(runs.iterdir())


def test_a_sweep_is_neither_scored_nor_resumed_as_a_run(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dataset=karate", "tracking=none", "figures=false", "epochs=1", "quiet=true"]
    axis = ["seed=0,1", "sweep.name=two", "hydra/launcher=basic"]
    assert main(["sweep", *words, *axis]) == 0
    folder = runs / "sweep" / "two"
    capsys.readouterr()
    assert main(["eval", f"run={folder}"]) == 2
    assert (
        f"two is a sweep: give one of its jobs, which {folder}/jobs has" in capsys.readouterr().err
    )
    assert main(["train", f"resume={folder}"]) == 2
    assert "two is of lpgnn sweep: resume= goes on with runs" in capsys.readouterr().err


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
