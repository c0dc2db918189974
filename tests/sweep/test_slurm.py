"""Jobs on a real Slurm: what is lost, and what runs into its time limit."""

from __future__ import annotations

import time

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.sweeps.submitted import in_queue

from .conftest import PATIENCE, Sweeper

pytestmark = pytest.mark.slurm

ON_SLURM = ("hydra/launcher=slurm", "hydra.launcher.cpus_per_task=1")


def test_a_job_that_is_killed_or_raises_leaves_the_others_alone(
    sweeper: Sweeper, slurm: None
) -> None:
    code, said = sweeper.run(
        [*ON_SLURM, "seed=range(4)", "epochs=6"],
        SABOTAGE_RAISE="1",
        SABOTAGE_KILL="2",
    )
    assert code == 1, said
    states = {row["seed"]: row["status"] for row in sweeper.leaderboard()}
    assert states == {"0": "finished", "1": "failed", "2": "failed", "3": "finished"}
    reasons = {row["seed"]: row["reason"] for row in sweeper.leaderboard()}
    assert "sabotage" in reasons["1"]
    assert reasons["2"]


def test_a_time_limit_saves_and_queues_again(sweeper: Sweeper, slurm: None) -> None:
    epochs = 60
    code, said = sweeper.run(
        [
            *ON_SLURM,
            "seed=0",
            f"epochs={epochs}",
            "hydra.launcher.timeout_min=1",
            "hydra.launcher.signal_delay_s=50",
        ],
        SABOTAGE_SLEEP="0.5",
    )
    assert code == 0, said
    (row,) = sweeper.leaderboard()
    computed = sweeper.epochs()
    assert [computed[row["folder"], epoch] for epoch in range(1, epochs + 1)] == [1] * epochs
    output = [p.read_text() for p in sweeper.folder().glob("slurm/*/*_log.err")]
    assert any("timed-out" in text for text in output), "the time limit was never reached"


def test_a_sweep_that_is_left_to_slurm(
    sweeper: Sweeper,
    slurm: None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Submit and return; the status tells queued, finished and lost jobs apart."""
    words = [*ON_SLURM, "seed=range(4)", "epochs=6", "sweep.detach=true", "sweep.name=left"]
    troubles = {"SABOTAGE_RAISE": "1", "SABOTAGE_KILL": "2", "SABOTAGE_SLEEP": "2"}
    code, said = sweeper.run(words, **troubles)
    assert code == 0, said
    assert "4 jobs submitted to Slurm" in said
    assert "lpgnn status left" in said
    # None of them is submitted twice while Slurm has it.
    code, said = sweeper.run([word for word in words if "detach" not in word])
    assert code == 2, said
    assert "jobs of this sweep are in Slurm's queue" in said
    monkeypatch.setenv("LPGNN_RUNS", str(sweeper.root))
    deadline = time.monotonic() + PATIENCE
    while in_queue(sweeper.root / "sweep" / "left") != {}:
        assert time.monotonic() < deadline
        time.sleep(1)
    assert main(["status", "left"]) == 1
    shown = capsys.readouterr().out
    assert "2 finished" in shown, shown
    assert "2 failed" in shown
    states = {row["seed"]: row["status"] for row in sweeper.leaderboard()}
    assert states == {"0": "finished", "1": "failed", "2": "failed", "3": "finished"}
    reasons = {row["seed"]: row["reason"] for row in sweeper.leaderboard()}
    assert "ended without a result" in reasons["2"]
