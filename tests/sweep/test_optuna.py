"""A search that draws its values, some of whose trials fail."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from .conftest import Sweeper

pytestmark = [
    pytest.mark.optuna,
    pytest.mark.skipif(
        not find_spec("optuna"), reason="the extra [optuna] is not installed: make test-ray"
    ),
]


def test_a_failing_trial_does_not_end_the_search(sweeper: Sweeper) -> None:
    words = [
        "hydra/sweeper=optuna",
        "hydra.sweeper.n_trials=6",
        "hydra.sweeper.n_jobs=2",
        "lr.theta=tag(log, interval(1e-3, 1e-1))",
        "seed=choice(0,1,2)",
        "epochs=5",
    ]
    code, said = sweeper.run(words, SABOTAGE_RAISE="1")
    rows = sweeper.leaderboard()
    assert len(rows) == 6, said
    states = {(row["seed"], row["status"]) for row in rows}
    assert states <= {("0", "finished"), ("1", "failed"), ("2", "finished")}, said
    assert code == (1 if ("1", "failed") in states else 0)
    figures = [float(row["best_epoch_accuracy"]) for row in rows if row["status"] == "finished"]
    assert figures == sorted(figures, reverse=True)
    # Asked again, the same search draws the same values and finds the jobs that are there.
    before = sweeper.epochs()
    sweeper.run([*words, "sweep.name=again"], SABOTAGE_RAISE="1")
    finished = {row["folder"] for row in rows if row["status"] == "finished"}
    after = sweeper.epochs()
    assert all(after[name, 1] == before[name, 1] for name in finished)
