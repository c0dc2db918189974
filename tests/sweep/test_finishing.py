"""A sweep ends with everything that can be computed, whatever happens to its jobs and to itself."""

from __future__ import annotations

import signal

import pytest

from .conftest import MakeSweeper, Sweeper


def disturbed(
    sweeper: Sweeper,
    jobs: int,
    epochs: int,
    raising: list[int],
    killed: list[int],
    kills_at: list[int],
) -> tuple[int, str]:
    """Start the sweep, kill it when so many jobs have finished, and start it a last time."""
    words = [f"seed=range({jobs})", f"epochs={epochs}", "hydra.launcher.workers=2"]
    trouble = {
        "SABOTAGE_RAISE": ",".join(map(str, raising)),
        "SABOTAGE_KILL": ",".join(map(str, killed)),
    }
    for count in kills_at:
        process = sweeper.start(words, SABOTAGE_SLEEP="0.05", **trouble)
        sweeper.wait_for_finished(count, process)
        process.kill()
        process.communicate()
    return sweeper.run(words, **trouble)


def check(
    make_sweeper: MakeSweeper,
    jobs: int,
    epochs: int,
    raising: list[int],
    killed: list[int],
    at: list[int],
) -> None:
    sweeper = make_sweeper("disturbed")
    code, said = disturbed(sweeper, jobs, epochs, raising, killed, at)
    bad = len(raising) + len(killed)
    assert code == 1, said
    assert f"{bad} of {jobs} jobs failed" in said
    assert said.count("RuntimeError: sabotage") >= len(raising)
    assert said.count("its process was ended by SIGKILL") >= len(killed)

    rows = sweeper.leaderboard()
    finished = [row for row in rows if row["status"] == "finished"]
    failed = {int(row["seed"]): row["reason"] for row in rows if row["status"] == "failed"}
    assert len(finished) == jobs - bad
    assert sorted(failed) == sorted([*raising, *killed])
    assert all("sabotage" in failed[seed] for seed in raising)
    assert all("SIGKILL" in failed[seed] for seed in killed)

    # Each epoch once: finished jobs are not touched, interrupted ones go on where they were.
    computed = sweeper.epochs()
    for row in finished:
        counts = [computed[row["folder"], epoch] for epoch in range(1, epochs + 1)]
        assert counts == [1] * epochs, row
    assert sum(row["status"] == "finished" for row in rows) * epochs == sum(
        count for (name, _), count in computed.items() if name in {r["folder"] for r in finished}
    )

    other = make_sweeper("undisturbed")
    code, said = other.run(
        [f"seed=range({jobs})", f"epochs={epochs}", "hydra.launcher.workers=2"],
        SABOTAGE_RAISE=",".join(map(str, raising)),
        SABOTAGE_KILL=",".join(map(str, killed)),
    )
    assert code == 1, said
    assert sweeper.leaderboard() == other.leaderboard()


def test_a_sweep_that_is_killed_goes_on_where_it_was(make_sweeper: MakeSweeper) -> None:
    check(make_sweeper, jobs=8, epochs=10, raising=[2], killed=[5], at=[2])


@pytest.mark.slow
def test_sixty_jobs_of_which_nine_fail_and_two_kills(make_sweeper: MakeSweeper) -> None:
    check(
        make_sweeper,
        jobs=60,
        epochs=20,
        raising=[3, 11, 24, 25, 40, 59],
        killed=[7, 30, 51],
        at=[12, 31],
    )


def states(sweeper: Sweeper) -> dict[str, str]:
    return {row["seed"]: row["status"] for row in sweeper.leaderboard()}


@pytest.mark.slow
def test_a_crash_in_a_pool_of_joblib_costs_one_job(sweeper: Sweeper) -> None:
    code, said = sweeper.run(
        ["seed=range(4)", "epochs=6", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"],
        SABOTAGE_KILL="1",
    )
    assert code == 1, said
    assert states(sweeper) == {"0": "finished", "1": "failed", "2": "finished", "3": "finished"}


@pytest.mark.parametrize(
    "launcher",
    ["basic", pytest.param("workers", marks=[pytest.mark.slow, pytest.mark.ci])],
)
def test_ctrl_c_saves_and_the_same_command_goes_on(sweeper: Sweeper, launcher: str) -> None:
    words = ["seed=range(4)", "epochs=10", f"hydra/launcher={launcher}"]
    process = sweeper.start(words, SABOTAGE_SLEEP="0.2")
    sweeper.wait_for_finished(1, process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode == 130, said
    assert "the same command goes on: lpgnn sweep dataset=karate" in said
    assert "finished" in states(sweeper).values()
    assert set(states(sweeper).values()) - {"finished"}, "it ended before the signal"
    code, said = sweeper.run(words)
    assert code == 0, said
    assert set(states(sweeper).values()) == {"finished"}
    assert set(sweeper.epochs().values()) == {1}


def test_failures_are_tried_again_when_asked(sweeper: Sweeper) -> None:
    words = ["seed=range(3)", "epochs=5", "hydra/launcher=basic"]
    code, said = sweeper.run([*words, "sweep.fail_fast=true"], SABOTAGE_RAISE="0")
    assert code == 1, said
    assert states(sweeper) == {"0": "failed", "1": "pending", "2": "pending"}
    code, said = sweeper.run(words)
    assert code == 1, said
    assert states(sweeper) == {"0": "failed", "1": "finished", "2": "finished"}
    code, said = sweeper.run([*words, "sweep.retry_failed=true"])
    assert code == 0, said
    assert set(states(sweeper).values()) == {"finished"}
    assert set(sweeper.epochs().values()) == {1, 2}  # epochs 1 to 3 of the job that failed: twice


@pytest.mark.slow
@pytest.mark.ci
def test_a_job_is_retried_so_often(sweeper: Sweeper) -> None:
    words = ["seed=range(2)", "epochs=5", "hydra/launcher=basic", "sweep.retries=2"]
    code, said = sweeper.run(words, SABOTAGE_RAISE="1")
    assert code == 1, said
    assert max(sweeper.epochs().values()) == 3
