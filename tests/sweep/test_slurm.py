"""Jobs on a real Slurm: what is lost, and what runs into its time limit."""

from __future__ import annotations

import pytest

from .conftest import Sweeper

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
    states = {row["seed"]: row["state"] for row in sweeper.leaderboard()}
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
