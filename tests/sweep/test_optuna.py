"""A search that draws its values, prunes, goes on, and survives trials that fail."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend

from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import Unit
from lpgnn_cli.signals import StopFlag
from lpgnn_cli.sweeps.jobs import Job, read_notes
from lpgnn_cli.sweeps.search import NAME, Pruning, open_study, split

from .conftest import Sweeper

PRUNED = optuna.trial.TrialState.PRUNED
SEARCH = (
    "hydra/sweeper=optuna",
    "hydra.sweeper.n_jobs=2",
    "lr.theta=tag(log, interval(1e-3, 1e-1))",
    "seed=choice(0,1,2)",
)


def study_of(folder: Path) -> optuna.Study:
    backend = JournalFileBackend(str(folder / "study.journal"))
    storage = optuna.storages.JournalStorage(backend)
    return optuna.load_study(study_name=NAME, storage=storage)


def test_what_is_drawn() -> None:
    fixed, space = split(["dataset=mutag", "layers=1,3", "lr.theta=tag(log, interval(1e-3, 1))"])
    assert fixed == ["dataset=mutag"]
    assert space["layers"].choices == ("1", "3")  # type: ignore[attr-defined]
    assert space["lr.theta"] == optuna.distributions.FloatDistribution(1e-3, 1.0, log=True)
    with pytest.raises(UserError, match="something to draw"):
        split(["dataset=mutag"])


def test_a_search_prunes_survives_failures_and_is_extended(sweeper: Sweeper) -> None:
    words = [
        *SEARCH,
        "epochs=12",
        "sweep.name=search",
        "hydra.sweeper.n_trials=8",
        "hydra.sweeper.startup_trials=2",
        "hydra.sweeper.warmup_epochs=2",
    ]
    code, said = sweeper.run(words, SABOTAGE_RAISE="1")
    assert code in (0, 1), said
    folder = sweeper.root / "sweep" / "search"
    study = study_of(folder)
    states = [trial.state.name for trial in study.trials]
    assert len(states) == 8, said
    assert "COMPLETE" in states
    by_seed = {(t.params["seed"], t.state.name) for t in study.trials}
    assert not {("1", "COMPLETE")} & by_seed
    rows = sweeper.leaderboard()
    assert {row["status"] for row in rows} <= {"finished", "failed", "pruned"}
    # Two more trials: nothing that is there is computed again.
    before = sweeper.epochs()
    words[words.index("hydra.sweeper.n_trials=8")] = "hydra.sweeper.n_trials=10"
    sweeper.run(words, SABOTAGE_RAISE="1")
    assert len(study_of(folder).trials) == 10
    after = sweeper.epochs()
    done = [row["folder"] for row in rows if row["status"] == "finished"]
    assert all(after[name, 1] == before[name, 1] for name in done)
    assert (folder / "figures" / "importance.png").is_file()


def test_a_search_that_is_interrupted_goes_on(sweeper: Sweeper) -> None:
    words = [*SEARCH, "epochs=8", "sweep.name=search", "hydra.sweeper.n_trials=3"]
    process = sweeper.start(words, SABOTAGE_SLEEP="0.5")
    deadline = time.monotonic() + 120
    while len(sweeper.epochs()) < 3:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    code, said = sweeper.run(words)
    assert code == 0, said
    trials = study_of(sweeper.root / "sweep" / "search").trials
    ended = [t for t in trials if t.state.name in ("COMPLETE", "PRUNED")]
    assert len(ended) == 3
    # What was in flight was drawn again, with the same values, and went on.
    left = [t.params for t in trials if t.user_attrs.get("drawn_again")]
    assert all(params in [t.params for t in ended] for params in left)
    assert set(json.loads((sweeper.root / "sweep" / "search" / "search.json").read_text())) == {
        "pruning",
        "trials",
    }


@pytest.mark.parametrize(
    ("metric", "direction"),
    [("auto", "MAXIMIZE"), ("honest/accuracy_mean", "MAXIMIZE"), ("test/loss", "MINIMIZE")],
)
def test_a_search_goes_towards_the_better_values(
    tmp_path: Path, metric: str, direction: str
) -> None:
    assert open_study(settings_of("none"), tmp_path, metric).direction.name == direction


def settings_of(pruner: str) -> Any:
    return SimpleNamespace(
        n_trials=4,
        n_jobs=1,
        sampler="random",
        seed=0,
        pruner=pruner,
        startup_trials=2,
        warmup_epochs=1,
    )


def test_a_job_that_is_worse_than_others_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    settings = settings_of("median")
    study = open_study(settings, tmp_path, "auto")
    flags = []
    for number, accuracy in enumerate((0.9, 0.8, 0.1, 0.95)):
        study.ask()
        job = Job(number, str(number) * 20, (f"seed={number}",))
        job.run.path.mkdir(parents=True)
        stop = StopFlag()
        pruning = Pruning(tmp_path, job, number, settings, stop)
        pruning.run_started(job.run, [Unit("fold-00", 0, 0), Unit("fold-01", 1, 0)], 9)
        for epoch in (1, 2, 3):
            pruning.epoch_done("fold-00", epoch, {"test/accuracy": accuracy})
        # Later folds are not compared.
        pruning.epoch_done("fold-01", 1, {"test/accuracy": 0.0})
        flags.append((stop.raised, read_notes(job.run).pruned))
        study.tell(number, None if stop.raised else accuracy, state=PRUNED if stop.raised else None)
    assert [raised for raised, _ in flags] == [False, False, True, False]
    assert flags[2][1] == 2
