"""Units one after another and side by side, their failures, Ctrl-C, and divergence."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.splits import Split
from lpgnn_cli.propagation import Step
from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.run import verdict
from lpgnn_cli.runfolder import (
    DIVERGED,
    FAILED,
    FINISHED,
    INTERRUPTED,
    Rule,
    RunFolder,
    Unit,
    UnitResult,
)
from lpgnn_cli.signals import StopFlag
from lpgnn_cli.training.execute import execute
from lpgnn_cli.training.fit import UnitFit, UnitTask

from ..conftest import present
from .conftest import MakeConfig, MakeTasks

CLIQUE = (
    "dataset=clique",
    "dataset.graphs=12",
    "dataset.nodes=5",
    "state=[4]",
    "inference.steps=9",
)
FOUR = (*CLIQUE, "protocol=kfold", "protocol.folds=4", "aggregator.dropout=0.2", "epochs=6")


class Watcher:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.epochs: list[tuple[str, int]] = []
        self.ended: dict[str, str] = {}

    def run_started(self, run: RunFolder, units: Sequence[Unit], epochs: int) -> None: ...

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
        self.epochs.append((unit, epoch))

    def unit_ended(self, unit: str, result: UnitResult) -> None:
        self.ended[unit] = result.state

    def run_ended(self, run: RunFolder, summary: Mapping[str, Any]) -> None: ...


def rows(task: UnitTask) -> list[dict[str, float]]:
    read = RunFolder(task.run).read_metrics(task.unit.name)
    return [{k: v for k, v in row.items() if k != "time"} for row in read]


class ExitsHard(Split):
    """Ends the process that unpickles it, without a word."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return os._exit, (7,)


class TakesLong(Split):
    """Keeps the process that unpickles it from getting on."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return time.sleep, (100,)


def test_side_by_side_gives_what_one_after_another_gives(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(*FOUR)
    in_turn, side_by_side = make_tasks(config, "turn"), make_tasks(config, "side")
    watchers = Watcher(), Watcher()
    expected = execute(in_turn, 1, [watchers[0]])
    found = execute(side_by_side, 2, [watchers[1]])
    assert [r.unit for r in found] == [t.unit.name for t in side_by_side]
    for result, other in zip(found, expected, strict=True):
        assert replace(result, seconds=0) == replace(other, seconds=0)
        assert result.state == FINISHED
    for mine, theirs in zip(side_by_side, in_turn, strict=True):
        assert rows(mine) == rows(theirs)
        assert len(rows(mine)) == 6
    assert sorted(watchers[1].epochs) == sorted(watchers[0].epochs)
    assert watchers[1].ended == watchers[0].ended


@pytest.mark.parametrize("workers", [1, 2])
def test_a_unit_that_raises_leaves_the_others_alone(
    workers: int, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    tasks = make_tasks(make_config(*FOUR, "epochs=2"))
    broken = replace(tasks[1].split, train=torch.tensor([10**6]))
    tasks[1] = replace(tasks[1], split=broken)
    watcher = Watcher()
    results = execute(tasks, workers, [watcher])
    assert [r.state for r in results] == [FINISHED, FAILED, FINISHED, FINISHED]
    assert results[1].reason.startswith("IndexError: ")
    folder = RunFolder(tasks[1].run)
    assert "Traceback" in (folder.unit("fold-01") / "error.txt").read_text()
    saved = folder.read_result("fold-01")
    assert saved is not None
    assert saved.state == FAILED
    assert watcher.ended == {r.unit: r.state for r in results}


def test_a_process_that_dies_leaves_the_others_alone(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    """One ends before it trains, one is killed in its second epoch."""
    tasks = make_tasks(make_config(*FOUR, "epochs=60"))
    killed = 1
    tasks[0] = replace(tasks[0], split=ExitsHard(**vars(tasks[0].split)))

    class Killer(Watcher):
        def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
            super().epoch_done(unit, epoch, metrics)
            if (unit, epoch) == ("fold-01", 2):
                # The children in the order of their start; that of fold-00 is gone already.
                children = sorted(multiprocessing.active_children(), key=lambda c: c._identity)
                os.kill(present(children[killed].pid), signal.SIGKILL)

        def unit_ended(self, unit: str, result: UnitResult) -> None:
            nonlocal killed
            super().unit_ended(unit, result)
            killed = 0 if unit == "fold-00" else killed

    watcher = Killer()
    results = execute(tasks, 2, [watcher])
    assert [r.state for r in results] == [FAILED, FAILED, FINISHED, FINISHED]
    assert results[0].reason == "its process ended with code 7"
    assert results[1].reason == "its process ended with code -9"
    assert len(rows(tasks[2])) == len(rows(tasks[3])) == 60
    assert watcher.ended == {r.unit: r.state for r in results}


def test_a_stop_reaches_units_that_have_not_begun(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    """One trains, one is still being set up, two wait."""
    tasks = make_tasks(make_config(*FOUR, "epochs=200000"))
    tasks[1] = replace(tasks[1], split=TakesLong(**vars(tasks[1].split)))
    stop = StopFlag()

    class Impatient(Watcher):
        def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
            stop.raised = True

    results = execute(tasks, 2, [Impatient()], stop)
    assert [r.state for r in results] == [INTERRUPTED, INTERRUPTED]
    assert results[0].epochs > 0
    assert results[1].reason == "stopped before its first epoch"
    assert execute(tasks, 2, [], stop) == []


def test_the_verdict_on_a_run_is_that_of_its_worst_unit() -> None:
    def unit(state: str) -> UnitResult:
        return UnitResult(f"unit-{state}", state, 1, 1, Rule.LAST_EPOCH, {}, 0.0, reason="why")

    finished, diverged, failed, stopped = map(unit, (FINISHED, DIVERGED, FAILED, INTERRUPTED))
    assert verdict([], 0, "stop") == (FINISHED, "")
    assert verdict([finished], 1, "stop") == (FINISHED, "")
    assert verdict([finished, diverged, stopped], 4, "stop") == (DIVERGED, "unit-diverged: why")
    assert verdict([diverged, failed], 2, "stop") == (FAILED, "unit-failed: why")
    assert verdict([finished, stopped], 2, "skip_fold") == (INTERRUPTED, "unit-interrupted: why")
    assert verdict([finished, diverged], 2, "skip_fold") == (FINISHED, "")
    assert verdict([diverged], 1, "skip_fold") == (DIVERGED, "unit-diverged: why")
    not_all = (INTERRUPTED, "stopped before all units had started")
    assert verdict([finished], 2, "stop") == not_all


# Ctrl-C, for real.

WORDS = ["tracking=none", "threads=1", "device=cpu", "figures=false", "quiet=true"]


def interrupted(runs: Path, *words: str, workers: int, rows: int = 4) -> tuple[Path, str]:
    """`lpgnn train` in a process group of its own, and Ctrl-C once it has trained a little."""
    command = [sys.executable, "-m", "lpgnn_cli", "train", "recipe=none", *WORDS, *words]
    process = subprocess.Popen(
        [*command, f"protocol.workers={workers}"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    running: list[Path] = []
    while len(running) < workers and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        files = runs.glob("train/*/*/units/*/metrics.csv")
        running = [f for f in files if len(f.read_text().splitlines()) > rows]
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    (record,) = runs.glob("train/*/*/run.json")
    return record.parent, said


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_saves_and_the_resumed_run_equals_an_uninterrupted_one(
    workers: int, runs: Path, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    words = (
        *CLIQUE,
        "aggregator.dropout=0.2",
        f"protocol.seeds={workers}",
        "protocol.patience=999",
    )
    run, said = interrupted(
        runs, *words, "epochs=999999", "checkpoint_every=999999", workers=workers
    )
    assert said == f"lpgnn: interrupted; go on with `lpgnn train resume={run}`.\n"
    folder = RunFolder(run)
    record = folder.read_record()
    assert record.state == INTERRUPTED
    done = []
    for unit in record.units:
        result = folder.read_result(unit.name)
        assert result is not None
        assert result.state == INTERRUPTED
        assert result.reason == "stopped by the user"
        assert (folder.unit(unit.name) / "last.pt").is_file()
        done.append(len(folder.read_metrics(unit.name)))
        assert done[-1] == result.epochs >= 4
    epochs = max(done) + 3

    assert main(["train", f"resume={run}", f"epochs={epochs}", "quiet=true"]) == 0
    whole = make_tasks(make_config(*words, f"epochs={epochs}"), "whole")
    execute(whole, 1, [])
    for task in whole:
        resumed = folder.read_metrics(task.unit.name)
        assert [{k: v for k, v in row.items() if k != "time"} for row in resumed] == rows(task)
        assert len(resumed) == epochs


# Numbers that are no longer finite.

EXPLODES = (*FOUR, "optim=sgd", "g=squared", "epochs=12", "checkpoint_every=2")
HUGE = "lr={theta:1e12,state:1e3,multiplier:1e3}"


@pytest.mark.parametrize(
    ("on_divergence", "states"),
    [("stop", [DIVERGED]), ("skip_fold", [DIVERGED] * 4)],
)
def test_a_diverging_unit_says_where_and_stops_or_is_skipped(
    on_divergence: str, states: list[str], make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(*EXPLODES, HUGE, "layers=2", f"on_divergence={on_divergence}")
    results = execute(make_tasks(config), 1, [])
    assert [r.state for r in results] == states
    reason = results[0].reason
    epoch = results[0].epochs + 1
    assert re.fullmatch(
        rf"the Lagrangian is not finite in epoch {epoch}: .*, largest state (inf|\d\S*) in "
        r"layer [01], largest multiplier (inf|\d\S*); try a smaller lr\.theta or lr\.state\.",
        reason,
    )


def test_divergence_side_by_side_interrupts_the_others(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    """With on_divergence=stop: what still runs is saved, what waits does not start."""
    steady = make_tasks(make_config(*FOUR, "epochs=200000"), "run")
    (exploding, *_) = make_tasks(make_config(*EXPLODES, HUGE), "run")
    tasks = [exploding, *steady[1:]]
    results = execute(tasks, 2, [])
    assert [r.state for r in results] == [DIVERGED, INTERRUPTED]
    assert (RunFolder(tasks[1].run).unit("fold-01") / "last.pt").is_file()
    assert not RunFolder(tasks[2].run).unit("fold-02").exists()


def poisoned(task: UnitTask, after: int) -> UnitFit:
    """A unit whose training features are not a number any more after some epochs."""
    fit = UnitFit(task)
    train_step = fit.propagation.train_step

    def poison(epoch: int, part: Part, graphs: torch.Tensor | None = None) -> Step:
        if epoch > after:
            poisoned = torch.full_like(part.batch.features, torch.nan)
            part = replace(part, batch=part.batch.with_features(poisoned))
        return train_step(epoch, part, graphs)

    fit.propagation.train_step = poison
    return fit


def test_the_last_good_checkpoint_is_kept(make_config: MakeConfig, make_tasks: MakeTasks) -> None:
    task = make_tasks(make_config(*FOUR, "epochs=12", "checkpoint_every=2", "layers=2"))[0]
    task.config.keep_best_on_test = True
    result = poisoned(task, after=5).fit(lambda *_: None, lambda: False)
    assert (result.state, result.epochs) == (DIVERGED, 5)
    assert result.reason.startswith(
        "the Lagrangian is not finite in epoch 6: weight transitions.0."
    )
    assert "largest state inf in layer 0, largest multiplier inf" in result.reason
    assert len(rows(task)) == 5
    folder = RunFolder(task.run).unit(task.unit.name)
    for name in ("last.pt", "best_on_test.pt"):
        saved = torch.load(folder / name, weights_only=True)
        assert saved["progress"]["epoch"] <= 5
        propagation = saved["propagation"]
        variables = propagation["training"]["train"]
        tensors = [
            *propagation["network"].values(),
            *variables["states"]["values"],
            *variables["multipliers"]["values"],
        ]
        assert all(bool(t.isfinite().all()) for t in tensors), name
    assert torch.load(folder / "last.pt", weights_only=True)["progress"]["epoch"] == 4


def test_halving_the_learning_rates_recovers(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    lr = "lr={theta:1.0,state:1.0,multiplier:1.0}"
    stopped = make_tasks(make_config(*FOUR, "optim=sgd", lr), "stopped")[:1]
    assert execute(stopped, 1, [])[0].state == DIVERGED

    task = make_tasks(make_config(*FOUR, "optim=sgd", lr, "on_divergence=halve_lr"))[0]
    fit = UnitFit(task)
    result = fit.fit(lambda *_: None, lambda: False)
    assert (result.state, result.epochs) == (FINISHED, 6)
    assert fit.progress.halvings >= 1
    assert fit.progress.lr_scale == 0.5**fit.progress.halvings
    assert isinstance(fit.propagation, Lagrangian)
    for optimiser in (fit.propagation.theta, fit.propagation.variables.states.optimiser):
        assert present(optimiser).param_groups[0]["lr"] == fit.progress.lr_scale
    assert [row["epoch"] for row in rows(task)] == list(range(1, 7))


def test_halving_goes_on_from_the_last_checkpoint(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    words = (*FOUR, "epochs=12", "checkpoint_every=2", "on_divergence=halve_lr")
    clean, task = make_tasks(make_config(*words), "clean")[0], make_tasks(make_config(*words))[0]
    execute([clean], 1, [])
    fit = poisoned(task, after=5)
    result = fit.fit(lambda *_: None, lambda: False)
    assert (result.state, result.epochs, fit.progress.halvings) == (FINISHED, 12, 1)
    assert [row["epoch"] for row in rows(task)] == list(range(1, 13))
    assert rows(task)[:4] == rows(clean)[:4]
    assert rows(task)[4:] != rows(clean)[4:]
    assert fit.propagation.theta.param_groups[0]["lr"] == 0.5 * task.config.lr.theta


def test_halving_ends_where_it_does_not_help(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    task = make_tasks(make_config(*FOUR, "on_divergence=halve_lr"))[0]
    features = task.dataset.batch.features
    features = features.masked_fill(torch.ones_like(features, dtype=torch.bool), torch.nan)
    broken = replace(task.dataset, batch=task.dataset.batch.with_features(features))
    result = UnitFit(replace(task, dataset=broken)).fit(lambda *_: None, lambda: False)
    assert (result.state, result.epochs) == (DIVERGED, 0)
    assert result.reason.startswith("the Lagrangian is not finite in epoch 1: ")


@pytest.mark.parametrize(("on_divergence", "code"), [("stop", 1), ("skip_fold", 1)])
def test_the_command_reports_divergence(
    on_divergence: str, code: int, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, *EXPLODES, HUGE, "protocol.workers=1", f"on_divergence={on_divergence}"]
    assert main(["train", *words]) == code
    said = capsys.readouterr().err
    assert said.startswith("lpgnn: fold-00: the Lagrangian is not finite in epoch ")
    assert "largest multiplier" in said
    (record,) = runs.glob("train/*/*/run.json")
    assert f"What was computed is in {record.parent}." in said
    assert RunFolder(record.parent).read_record().state == DIVERGED
