"""What a job is, by what it computes, and what a sweep does with what is there of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import compose, conf_dir, load, make_loader, to_typed, without_hydra
from lpgnn_cli.config.compose_jobs import SweepLoader
from lpgnn_cli.runfolder import FAILED, FINISHED, INTERRUPTED, RUNNING, RunFolder
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.sweeps import identity
from lpgnn_cli.sweeps.board import Board, View
from lpgnn_cli.sweeps.function import as_job
from lpgnn_cli.sweeps.identity import identify
from lpgnn_cli.sweeps.jobs import (
    BY_DEATH,
    BY_DIVERGENCE,
    BY_USER,
    PENDING,
    Job,
    fail,
    is_to_run,
    read_notes,
    read_table,
    state_of,
)
from lpgnn_cli.sweeps.leaderboard import command_line, effect_title, effects
from lpgnn_cli.sweeps.objective import objective, search_value
from lpgnn_cli.sweeps.outcome import read_board
from lpgnn_cli.sweeps.sample import drawn
from lpgnn_cli.sweeps.session import Session, default_name, swept_overrides
from lpgnn_cli.sweeps.supervisor import Supervisor

KARATE = ["dataset=karate", "layers=1", "state=[4]"]
GRIDS = sorted(path.stem for path in (conf_dir() / "experiment" / "grid").glob("*.yaml"))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    return Job(3, "ab" * 32, ("seed=1",), {"seed": "1"})


def set_state(job: Job, state: str) -> RunFolder:
    fail(job, BY_DEATH, "gone")
    record = job.run.read_record()
    record.state = state
    job.run.write_record(record)
    return job.run


@pytest.mark.parametrize(
    "words",
    [
        [*KARATE, "seed=3", "lr.theta=0.01"],
        ["dataset=mutag", "g=abs_eps", "g.eps=0.3", "layers=2", "state=[8,2]"],
        ["dataset=mutag", "recipe=none"],
        ["+experiment/grid=paper_mutag", "aggregator=avg", "aggregator.hidden=[5]"],
    ],
)
def test_shared_compositions_are_those_of_hydra(words: list[str]) -> None:
    loader = make_loader()
    master = load(loader, "sweep", ["hydra/launcher=basic"], multirun=True)
    expected = loader.load_sweep_config(master, list(words))
    sharing = SweepLoader(loader)
    for _ in range(2):
        found = sharing.load_sweep_config(master, list(words))
        assert OmegaConf.to_yaml(found) == OmegaConf.to_yaml(expected)
        assert type(OmegaConf.to_object(found.aggregator)) is type(
            OmegaConf.to_object(expected.aggregator)
        )


def test_identity_is_of_what_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose("train", KARATE)
    own = identify(config)
    same = ["name=x", "quiet=true", "figures=false", "tracking=none"]
    assert identify(compose("train", [*KARATE, *same, "checkpoint_every=7"])) == own
    assert identify(compose("train", [*KARATE, "protocol.workers=2", "data.root=/x"])) == own
    for other in (
        "threads=3",
        "seed=1",
        "lr.theta=0.5",
        "epochs=7",
        "dataset.positional=2",
        "g=abs",
    ):
        assert identify(compose("train", [*KARATE, other])) != own
    monkeypatch.setattr(identity, "code_version", lambda: "another")
    assert identify(config) != own


def test_identity_follows_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    config = compose("train", KARATE)
    own = identify(config)
    monkeypatch.setattr(identity, "data_version", lambda config: "other graphs")
    assert identify(config) != own


def test_a_job_is_the_train_run_that_repeats_it(job: Job) -> None:
    loader = make_loader()
    words = [*KARATE, "lr.theta=0.02", "sweep.retries=2"]
    sweep = to_typed(without_hydra(load(loader, "sweep", words)))
    own = replace(job, overrides=tuple(words))
    line = command_line(own)
    assert line == "lpgnn train dataset=karate layers=1 'state=[4]' lr.theta=0.02"
    repeated = compose("train", [*KARATE, "lr.theta=0.02"])
    assert identify(as_job(sweep, own)) == identify(sweep) == identify(repeated)


def test_running_without_a_process_is_interrupted(job: Job) -> None:
    assert state_of(job.run) == (PENDING, "")
    run = set_state(job, RUNNING)
    with run.held():
        assert state_of(run)[0] == RUNNING
    assert state_of(run)[0] == INTERRUPTED
    assert is_to_run(run, retries=0, retry_failed=False)


def test_what_a_sweep_that_comes_by_computes(job: Job) -> None:
    run = job.run
    assert is_to_run(run, 0, False)
    set_state(job, FINISHED)
    assert not is_to_run(run, 5, True)
    set_state(job, FAILED)
    assert read_notes(run).failures == 2
    assert not is_to_run(run, 0, False)
    assert not is_to_run(run, 1, False)
    assert is_to_run(run, 2, False)
    assert is_to_run(run, 0, True)
    fail(job, BY_DIVERGENCE, "diverged")
    assert not is_to_run(run, 9, False)
    fail(job, BY_USER, "no such data")
    assert is_to_run(run, 0, False)


def board() -> Iterator[View]:
    for number, (g, seed, accuracy) in enumerate(
        [("abs", 0, 0.5), ("abs", 1, 0.7), ("lin", 0, 0.9), ("lin", 1, float("nan"))]
    ):
        view = View(Job(number, str(number), (), {"g": g, "seed": str(seed)}), FINISHED)
        view.summary = RunSummary.from_dict(
            {"cv/accuracy_mean": 1 - accuracy, "honest/accuracy_mean": accuracy}
        )
        yield view


def test_ranking_and_marginal_effects() -> None:
    ranking = Board("auto")
    ranking.views = {view.job.key: view for view in board()}
    assert [view.job.number for view in ranking.ranked()] == [2, 1, 0, 3]
    best = ranking.best()
    assert best is not None
    assert best.job.number == 2
    found: dict[tuple[str, str], tuple[object, ...]] = {
        (e.axis, e.value): (e.jobs, e.mean, e.best) for e in effects(ranking, ["g", "seed"])
    }
    assert found["g", "abs"] == (2, pytest.approx(0.6), 0.7)
    assert found["g", "lin"] == (1, 0.9, 0.9)
    assert found["seed", "0"] == (2, pytest.approx(0.7), 0.9)


def test_the_objective_is_honest_unless_another_is_asked_for() -> None:
    summary = {"cv/accuracy_mean": 0.9, "honest/accuracy_mean": 0.8, "honest/rule": "last epoch"}
    by_validation = {**summary, "honest/rule": "validation loss"}
    assert objective(RunSummary.from_dict(summary), "auto") == 0.8
    assert objective(RunSummary.from_dict(by_validation), "auto") == 0.8
    assert objective(RunSummary.from_dict(summary), "cv/accuracy_mean") == 0.9
    assert search_value(RunSummary.from_dict(summary), "auto") == 0.8
    errors = RunSummary.from_dict({"honest/mae_mean": 0.3})
    assert (objective(errors, "auto"), search_value(errors, "auto")) == (0.3, -0.3)
    assert search_value(errors, "honest/mae_mean") == 0.3, "a search knows that this is an error"


def test_an_effect_on_an_optimistic_figure_is_labelled() -> None:
    assert effect_title(Board("auto")) == "honest/accuracy_mean"
    assert "(optimistic" in effect_title(Board("cv/accuracy_mean"))
    assert "(optimistic" in effect_title(Board("per_fold_max/accuracy_mean"))


@pytest.mark.parametrize("grid", GRIDS)
def test_every_grid_composes_and_says_how_large_it_is(grid: str) -> None:
    loader = make_loader()
    words = [f"+experiment/grid={grid}"]
    base = load(loader, "sweep", words, multirun=True)
    count, first = 1, []
    for key, override in swept_overrides(loader, base).items():
        values = list(override.sweep_string_iterator())
        count *= len(values)
        first.append(f"{key}={values[-1]}")
    text = (conf_dir() / "experiment" / "grid" / f"{grid}.yaml").read_text()
    assert f"# {count} combinations" in text
    config = to_typed(without_hydra(load(loader, "sweep", [*words, *first])))
    assert config.readout.hidden == config.aggregator.hidden


def test_the_same_question_has_the_same_name() -> None:
    loader = make_loader()
    base = load(loader, "sweep", ["dataset=karate"])
    asked = default_name(base, ["seed"], ["seed=1,2", "dataset=karate"])
    manner = ["dataset=karate", "sweep.retries=3", "hydra/launcher=joblib", "seed=1,2"]
    assert default_name(base, ["seed"], manner) == asked
    assert default_name(base, ["seed"], ["seed=1,2,3", "dataset=karate"]) != asked


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["lyers=1,2"], "there is no setting lyers. Did you mean layers"),
        (["layers=1,0", "state=[4]"], "layers must be at least 1, not 0."),
        (["g=abs,absq"], "g has no option absq."),
        (["layers=1,2", "state=[4],[4,2]"], "state has 2 entries, but layers=1"),
        (["sweep.retries=-1", "seed=1,2"], "sweep.retries must be at least 0"),
        (["sweep.retries=1,2"], "sweep.retries is not a setting to sweep over"),
        (["sweep.sample=0", "seed=1,2"], "sweep.sample must be at least 1"),
        (["sweep.sample=2", "hydra/sweeper=optuna", "seed=1,2"], "sweep.sample draws from a grid"),
        (["sweep.name=../x"], "sweep.name=../x cannot name a folder"),
        (["hydra.launcher.workers=many", "seed=1,2"], "hydra.launcher.workers must be auto"),
    ],
)
def test_a_mistake_is_answered_before_any_work(
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    assert main(["sweep", "dataset=karate", "tracking=none", *words]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"lpgnn: {sentence}")
    assert not (tmp_path / "sweep" / "jobs").exists()


def test_a_dry_run_starts_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    words = ["dataset=karate", "g=glob(abs*)", "seed=range(2)", "sweep.dry_run=true"]
    assert main(["sweep", *words]) == 0
    said = capsys.readouterr().out
    assert "g=abs_eps,seed=1" in said
    assert "4 of 4 jobs to run; 4 unknown" in said
    assert not (tmp_path / "sweep" / "jobs").exists()


def test_a_larger_draw_has_the_smaller_one_among_its_own() -> None:
    everything = list(range(50))
    draws = [drawn(everything, wanted) for wanted in (3, 10, 50, 99)]
    assert [len(draw) for draw in draws] == [3, 10, 50, 50]
    assert all(draw == sorted(draw) for draw in draws)
    assert set(draws[0]) < set(draws[1]) < set(draws[2])
    assert draws[0] != everything[:3]
    assert drawn(everything, None) == everything


def test_a_sample_is_trained_alone_and_a_larger_one_adds_to_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    words = [*KARATE, "epochs=1", "tracking=none", "hydra/launcher=basic", "seed=range(12)"]
    (before,) = sampled(capsys, tmp_path, [*words, "sweep.sample=2"], "2 of 12 combinations")
    record = before.read_record()
    assert len(read_table(before.path)) == 2
    assert main(["sweep", *words, "sweep.sample=4", "sweep.dry_run=true"]) == 0
    assert "2 of 4 jobs to run" in capsys.readouterr().out
    # Nothing was started, so nothing is said to be part of the sweep.
    assert len(read_table(before.path)) == 2
    (after,) = sampled(capsys, tmp_path, [*words, "sweep.sample=4"], "4 of 12 combinations")
    assert after.read_summary()["combinations"] == 12
    assert len(read_table(after.path)) == 4
    # What was there counts, so it is the same sweep, which began when it began.
    assert after.read_record().started == record.started


def test_the_best_of_a_brief_sweep_are_trained_in_full(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    words = [*KARATE, "tracking=none", "hydra/launcher=basic"]
    words += ["lr.theta=1e-1,1e-2,1e-9", "seed=1,2"]
    brief = ["epochs=3", "sweep.name=brief"]
    (first,) = sampled(capsys, tmp_path, [*words, *brief], "")
    ranked = read_board(first.path).ranked()
    words += ["epochs=5", "sweep.best_of=brief", "sweep.name=full"]
    sampled(capsys, tmp_path, [*words, "sweep.sample=2"], "2 of 6 combinations, the best of brief")
    jobs = read_table(tmp_path / "sweep" / "full")
    assert sorted(str(job.values) for job in jobs) == sorted(str(v.job.values) for v in ranked[:2])
    assert {job.number for job in jobs} == {view.job.number for view in ranked[:2]}
    assert all("epochs=5" in job.overrides for job in jobs)
    assert main(["status", "full"]) == 0
    assert "2 of 6 combinations, the best of brief" in capsys.readouterr().out
    words[-2] = f"sweep.best_of={first.path}"
    sampled(capsys, tmp_path, [*words, "sweep.sample=4"], "4 of 6 combinations, the best of /")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["seed=1,2", "sweep.best_of=brief"], "say by sweep.sample=N how many"),
        (["seed=1,2", "sweep.best_of=other", "sweep.sample=1"], "there is no such sweep"),
        (
            ["g=abs,lin", "sweep.best_of=brief", "sweep.sample=1"],
            "the axes seed, and this sweep g",
        ),
        (
            ["seed=1,3", "sweep.best_of=brief", "sweep.sample=2"],
            "only 1 of its best 2",
        ),
        (["seed=1,2", "sweep.best_of=brief", "sweep.sample=1", "sweep.name=brief"], "itself"),
        (
            ["layers=1,3", "sweep.best_of=brief", "sweep.sample=1", "protocol=nested"],
            "has seen graphs that the outer folds of protocol=nested are to be tested on",
        ),
        (["seed=1,2", "sweep.best_of=unfinished", "sweep.sample=1"], "2 jobs of it have not ended"),
    ],
)
def test_a_choice_that_another_sweep_cannot_make_is_refused(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    sentence: str,
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    shared = [*KARATE, "epochs=1", "tracking=none", "hydra/launcher=basic"]
    sampled(capsys, tmp_path, [*shared, "seed=1,2", "sweep.name=brief"], "")
    with monkeypatch.context() as patch:
        patch.setattr(Supervisor, "_run", lambda *_: None)
        main(["sweep", *shared, "epochs=2", "seed=1,2", "sweep.name=unfinished"])
    capsys.readouterr()
    assert main(["sweep", *shared, *words]) == 2
    message = capsys.readouterr().err
    assert sentence in message
    assert message.count("\n") == 1


def test_the_best_command_names_the_folder_of_ones_own_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    (tmp_path / "variant").mkdir()
    (tmp_path / "variant" / "wide.yaml").write_text("# @package _global_\nstate: [8]\n")
    words = ["--config-dir", str(tmp_path), *KARATE[:-1], "variant=wide", "epochs=1"]
    manner = ["tracking=none", "hydra/launcher=basic"]
    assert main(["sweep", *words, *manner, "seed=1,2"]) == 0
    best = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("best "))
    command = shlex.split(best)[1:]
    assert command[:4] == ["lpgnn", "train", "--config-dir", str(tmp_path)]
    assert main(command[1:]) == 0


def test_a_sweep_of_which_nothing_counts_any_more_begins_anew(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    words = [*KARATE, "epochs=1", "tracking=none", "hydra/launcher=basic", "seed=range(2)"]
    (before,) = sampled(capsys, tmp_path, words, "")
    record = before.read_record()
    record.git_commit, record.version = "an earlier one", "0"
    before.write_record(record)
    monkeypatch.setattr(identity, "code_version", lambda: "changed")
    (after,) = sampled(capsys, tmp_path, words, "")
    again = after.read_record()
    assert again.id == record.id
    assert again.started > record.started
    assert (again.git_commit, again.version) != ("an earlier one", "0")


def test_a_sweep_that_began_anew_and_was_killed_goes_on_from_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    words = [*KARATE, "epochs=1", "tracking=none", "hydra/launcher=basic", "seed=range(2)"]
    (before,) = sampled(capsys, tmp_path, words, "")
    record = before.read_record()
    monkeypatch.setattr(identity, "code_version", lambda: "changed")
    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise SystemExit  # which leaves the folder as it is at that moment

        patch.setattr(Session, "close", killed)
        patch.setattr(Supervisor, "_run", killed)
        with pytest.raises(SystemExit):
            main(["sweep", *words])
    anew = before.read_record()
    assert anew.started > record.started
    assert main(["sweep", *words]) == 0
    assert before.read_record().started == anew.started
    assert before.read_record().state == FINISHED


def test_jobs_that_another_sweep_computed_since_are_no_part_of_an_earlier_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path))
    words = [*KARATE, "epochs=1", "tracking=none", "hydra/launcher=basic", "seed=range(2)"]
    (own,) = sampled(capsys, tmp_path, words, "")
    record = own.read_record()
    monkeypatch.setattr(identity, "code_version", lambda: "changed")
    sampled(capsys, tmp_path, [*words, "sweep.name=other"], "")
    sampled(capsys, tmp_path, words, "")
    assert own.read_record().started > record.started


def sampled(
    capsys: pytest.CaptureFixture[str], root: Path, words: list[str], closing: str
) -> list[RunFolder]:
    assert main(["sweep", *words]) == 0
    assert closing in capsys.readouterr().out
    return [RunFolder(path.parent) for path in sorted(root.glob("sweep/*/leaderboard.csv"))]
