"""A run that was stopped or killed and resumed is the run that was never interrupted."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.training import ValidatedConfig
from lpgnn_cli.errors import UserError
from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.propagation.saddle import Saddle
from lpgnn_cli.runfolder import FINISHED, INTERRUPTED, MODEL, RUNNING, RunFolder, UnitResult
from lpgnn_cli.signals import StopFlag
from lpgnn_cli.training.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from lpgnn_cli.training.evaluation import Evaluation
from lpgnn_cli.training.experiment import reopen_run
from lpgnn_cli.training.fit import UnitFit, UnitTask

from ..conftest import present
from .conftest import MakeConfig, MakeTasks

EPOCHS, STOP = 12, 7

SMALL = ("state=[4]", "inference.steps=20")
CLIQUE = ("dataset=clique", "dataset.graphs=8", "dataset.nodes=5", *SMALL)
CSL = ("dataset=csl", "dataset.nodes=9", "dataset.copies=6", "dataset.skips=[2,3]", *SMALL)
DROPOUT = ("aggregator.dropout=0.3", "readout.dropout=0.2")
CASES = {
    "gradient, dropout, adam, decay": (*CLIQUE, *DROPOUT, "optim.decay=0.5", "optim.decay_every=3"),
    "gradient, momentum, penalty": (
        *CLIQUE,
        "optim=sgd",
        "optim.momentum=0.9",
        "lr={theta:1e-3,state:1e-3,multiplier:1e-3}",
        "propagation.gain=0.9",
        "propagation.gain_held_by=penalty",
        "propagation.warmup=2",
        "propagation.rho=1",
    ),
    "one_shot, anderson, dropout": (
        *CLIQUE,
        *DROPOUT,
        "propagation.updates=one_shot",
        "inference=anderson",
        "layers=2",
    ),
    "fixed_point, sign flips": (*CSL, "propagation=fixed_point", "dataset.positional=3"),
    "gradient, sign flips": (*CSL, "dataset.positional=3", *DROPOUT),
    "layers, dropout, early stopping": (
        *CLIQUE,
        *DROPOUT,
        "propagation=layers",
        "lr.theta=0.3",
        "protocol.patience=3",
        "layers=2",
    ),
    "frozen": (*CLIQUE, "propagation.states=frozen", "readout.norm=batch"),
}


class Killed(BaseException):
    """What a process meets when it is killed: nothing is saved any more."""


def watch(task: UnitTask, until: int | None = None, kill: bool = False) -> UnitResult:
    """Train a unit; after `until` epochs stop it politely, or kill it."""
    done = 0

    def report(epoch: int, metrics: dict[str, float]) -> None:
        nonlocal done
        done = epoch
        if kill and epoch == until:
            raise Killed

    return UnitFit(task).fit(report, lambda: done == until and not kill)


def rows(task: UnitTask) -> list[dict[str, float]]:
    read = RunFolder(task.run).read_metrics(task.unit.name)
    return [{k: v for k, v in row.items() if k != "time"} for row in read]


def checkpoints(task: UnitTask) -> list[str]:
    """Those that training can go on from, or that were kept of an epoch."""
    files = RunFolder(task.run).unit(task.unit.name).glob("*.pt")
    return sorted(path.name for path in files if path.name != MODEL)


def checkpoint(task: UnitTask, name: str) -> dict[str, Any]:
    path = RunFolder(task.run).unit(task.unit.name) / name
    content: dict[str, Any] = torch.load(path, weights_only=True)
    content["progress"].pop("seconds")
    return content


def assert_same(a: Any, b: Any, where: str = "") -> None:
    """Equal to the last bit, tensors included."""
    assert type(a) is type(b), where
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype, where
        assert torch.equal(a, b), where
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for index, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}/{index}")
    else:
        assert a == b, where


def without_time(result: UnitResult) -> UnitResult:
    result.seconds = 0.0
    return result


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_unit_ends_as_if_it_had_not_been(
    case: str, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config: TrainConfig = make_config(f"epochs={EPOCHS}", "checkpoint_every=4", *CASES[case])
    (whole,) = make_tasks(config, "whole")
    expected = watch(whole)
    assert expected.state == FINISHED
    assert len(rows(whole)) == expected.epochs

    (stopped,) = make_tasks(config, "stopped")
    first = watch(stopped, until=STOP if expected.epochs > STOP else 3)
    assert first.state == INTERRUPTED
    assert checkpoint(stopped, "last.pt")["progress"]["epoch"] == first.epochs
    (killed,) = make_tasks(config, "killed")
    with pytest.raises(Killed):
        watch(killed, until=first.epochs, kill=True)
    assert len(rows(killed)) == first.epochs
    assert (RunFolder(killed.run).unit("fold-00") / "last.pt").is_file() == (first.epochs >= 4)
    if first.epochs >= 4:
        assert checkpoint(killed, "last.pt")["progress"]["epoch"] == 4

    for task in (stopped, killed):
        # Anything left in the generators of this process must not matter.
        torch.manual_seed(4321)
        result = watch(task)
        assert_same(rows(task), rows(whole))
        for name in checkpoints(whole):
            assert_same(checkpoint(task, name), checkpoint(whole, name))
        assert checkpoints(task) == checkpoints(whole)
        assert without_time(result) == without_time(expected)
        ours, theirs = (RunFolder(t.run).unit("fold-00") / "predictions.csv" for t in (task, whole))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("select", ["loss", "accuracy"])
def test_early_stopping_restores_the_checkpoint_of_the_best_validation_epoch(
    select: str, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    words = *CASES["layers, dropout, early stopping"], f"protocol.select={select}"
    config = make_config("epochs=200", *words)
    (task,) = make_tasks(config)
    fit = UnitFit(task)
    result = fit.fit(lambda *_: None, lambda: False)
    assert isinstance(config.protocol, ValidatedConfig)
    history = rows(task)
    losses = [row["val/loss"] for row in history]
    accuracies = [row["val/accuracy"] for row in history]
    latest = max(e for e, value in enumerate(accuracies) if value == max(accuracies))
    best = losses.index(min(losses)) if select == "loss" else latest
    assert len(history) == result.epochs == best + 1 + config.protocol.patience < 200
    assert (result.selected_epoch, result.rule) == (best + 1, f"validation {select}")
    assert result.metrics == {k: v for k, v in history[best].items() if k != "epoch"}
    # The network itself is that of the best epoch, and so is selected.pt.
    for name in ("val", "test"):
        again = Evaluation.of(fit.propagation, name, fit.parts[name]).metrics(name)
        assert again == {k: history[best][k] for k in again}
    assert checkpoint(task, "selected.pt")["progress"]["epoch"] == best + 1
    assert checkpoint(task, "last.pt")["progress"]["epoch"] == result.epochs


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("protocol.select=auto", "optim.schedule=cosine"), "last epoch"),
        (("protocol.select=last", "optim.schedule=step", "protocol.patience=1"), "last epoch"),
        (("protocol.select=auto", "optim.schedule=step"), "validation metric"),
    ],
)
def test_an_epoch_before_the_end_of_a_planned_schedule_is_not_selected(
    words: tuple[str, ...], expected: str, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(*CASES["layers, dropout, early stopping"], "epochs=30", *words)
    (task,) = make_tasks(config)
    result = watch(task)
    assert result.rule == expected
    if expected == "last epoch":
        assert (result.epochs, result.selected_epoch) == (30, 30)
        assert checkpoints(task) == ["last.pt"]
    else:
        assert "selected.pt" in checkpoints(task)


@pytest.mark.parametrize("wanted", [False, True])
def test_without_validation_the_last_epoch_counts_and_test_labels_choose_nothing_unless_asked(
    wanted: bool, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    words = "protocol=kfold", "protocol.folds=2", "epochs=6", f"keep_best_on_test={wanted}"
    task = make_tasks(make_config(*CLIQUE, *words))[0]
    result = watch(task)
    assert checkpoints(task) == (["best_on_test.pt", "last.pt"] if wanted else ["last.pt"])
    history = rows(task)
    assert (result.epochs, result.selected_epoch, result.rule) == (6, 6, "last epoch")
    assert result.metrics == {k: v for k, v in history[-1].items() if k != "epoch"}
    if wanted:
        accuracies = [row["test/accuracy"] for row in history]
        best = checkpoint(task, "best_on_test.pt")["progress"]["epoch"]
        assert best == accuracies.index(max(accuracies)) + 1


def test_learning_rates_decay_for_every_player(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    search = "inference=lagrangian"
    config = make_config(*CASES["gradient, dropout, adam, decay"], search, "epochs=7")
    (task,) = make_tasks(config)
    fit = UnitFit(task)
    theta, states = [], []

    def report(epoch: int, metrics: dict[str, float]) -> None:
        propagation = fit.propagation
        theta.append(propagation.theta.param_groups[0]["lr"])
        assert isinstance(propagation, Lagrangian)
        held = [propagation.variables]
        for follower in propagation.followers.values():
            assert isinstance(follower.rule, Saddle)
            held.append(follower.rule.variables)
        for variables in held:
            for player in (variables.states, variables.multipliers):
                states.append(present(player.optimiser).param_groups[0]["lr"])

    fit.fit(report, lambda: False)
    scales = [1, 1, 1, 0.5, 0.5, 0.5, 0.25]
    assert theta == [config.lr.theta * scale for scale in scales]
    assert states == [config.lr.state * scale for scale in scales for _ in range(6)]


def test_a_checkpoint_holds_all_that_is_needed(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(*CLIQUE, "epochs=2")
    (task,) = make_tasks(config)
    watch(task)
    content = checkpoint(task, "last.pt")
    assert content["format"] == FORMAT
    assert content["config"]["dataset"]["graphs"] == 8
    assert content["dataset_fingerprint"] == task.dataset.fingerprint()
    assert content["unit"] == {"name": "fold-00", "fold": 0, "seed": 0}
    assert torch.equal(content["split"]["test"], task.split.test)
    assert content["shape"]["classes"] == 2
    propagation = content["propagation"]
    assert set(propagation) == {"network", "theta", "training", "followers"}
    assert set(propagation["followers"]) == {"val", "test"}
    assert propagation["training"]["train"]["states"]["values"][0].shape == (8 * 5, 4)


def test_a_checkpoint_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(path, {"epoch": 1})

    def full_disk(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(path, {"epoch": 2})
    assert load_checkpoint(path) == {"format": FORMAT, "epoch": 1}


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    with pytest.raises(UserError, match=r"last.pt does not exist\."):
        load_checkpoint(path)
    path.write_bytes(b"not a zip file")
    with pytest.raises(UserError, match="is not a checkpoint that can be read"):
        load_checkpoint(path)
    torch.save({"format": FORMAT + 1}, path)
    with pytest.raises(UserError, match=f"has checkpoint format {FORMAT + 1}; this version reads"):
        load_checkpoint(path)
    torch.save({"format": FORMAT, "code": print}, path)
    with pytest.raises(UserError, match="is not a checkpoint that can be read"):
        load_checkpoint(path)


# The command itself.

WORDS = ["tracking=none", "threads=1", "protocol.workers=1", "device=cpu", "figures=false"]
TWO_UNITS = [*WORDS, *CLIQUE, "quiet=true", "protocol.seeds=2", "checkpoint_every=5"]


def only_run(runs: Path) -> Path:
    (record,) = runs.glob("train/*/*/run.json")
    return record.parent


def stop_after(checks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Ctrl-C were pressed when `stop` has been asked so often."""
    asked = 0

    def stop(self: StopFlag) -> bool:
        nonlocal asked
        asked += 1
        return asked > checks

    monkeypatch.setattr(StopFlag, "__call__", stop)


def curves(run: Path) -> dict[str, list[dict[str, float]]]:
    folder = RunFolder(run)
    return {
        unit.name: [
            {k: v for k, v in row.items() if k != "time"} for row in folder.read_metrics(unit.name)
        ]
        for unit in folder.read_record().units
    }


def test_the_command_resumes_and_extends_a_run(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *TWO_UNITS, "epochs=9"]) == 0
    whole = only_run(runs)
    expected = curves(whole)
    monkeypatch.setenv("LPGNN_RUNS", str(runs / "second"))
    with monkeypatch.context() as context:
        stop_after(9 + 4, context)  # in epoch 5 of the second unit
        capsys.readouterr()
        assert main(["train", *TWO_UNITS, "epochs=9"]) == 130
    run = only_run(runs / "second")
    said = capsys.readouterr().err
    assert said == f"lpgnn: interrupted; go on with `lpgnn train resume={run}`.\n"
    assert RunFolder(run).read_record().state == INTERRUPTED
    assert [len(rows) for rows in curves(run).values()] == [9, 4]
    first_unit = (run / "units" / "fold-00-seed-0" / "last.pt").stat().st_mtime_ns

    assert main(["train", f"resume={run}", "quiet=true"]) == 0
    record = RunFolder(run).read_record()
    assert (record.state, record.pid) == (FINISHED, os.getpid())
    assert curves(run) == expected
    assert (run / "units" / "fold-00-seed-0" / "last.pt").stat().st_mtime_ns == first_unit
    ours, theirs = (RunFolder(path).read_summary() for path in (run, whole))
    assert {k: v for k, v in ours.items() if k != "seconds"} == {
        k: v for k, v in theirs.items() if k != "seconds"
    }

    # More epochs: the first nine are those that were there.
    assert main(["train", f"resume={run}", "epochs=11", "quiet=true"]) == 0
    extended = curves(run)
    assert {name: rows[:9] for name, rows in extended.items()} == expected
    assert {name: len(rows) for name, rows in extended.items()} == dict.fromkeys(expected, 11)
    assert "epochs: 11" in RunFolder(run).config_path.read_text()
    assert main(["train", f"resume={run}", "epochs=10", "quiet=true"]) == 2
    assert "epochs: 11" in RunFolder(run).config_path.read_text()


def test_more_epochs_for_a_holdout_run_that_was_not_out_of_patience(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *WORDS, *CLIQUE, "quiet=true", "epochs=3"]) == 0
    run = only_run(runs)
    assert main(["train", f"resume={run.name}", "epochs=5"]) == 0
    assert [len(rows) for rows in curves(run).values()] == [5]


def test_a_run_that_stopped_early_is_finished_whatever_epochs_say(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config("epochs=200", *CASES["layers, dropout, early stopping"])
    (task,) = make_tasks(config)
    assert watch(task).epochs < 200
    config.epochs = 400
    assert make_tasks(config) == []


def test_resume_takes_the_settings_of_the_run(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *TWO_UNITS, "epochs=1"]) == 0
    run = only_run(runs)
    capsys.readouterr()
    for words, others in ((["seed=3"], "seed"), (["g=abs", "lr.theta=1"], "g, lr.theta")):
        assert main(["train", f"resume={run}", *words]) == 2
        assert capsys.readouterr().err == (
            f"lpgnn: resume= goes on with the settings of the run: leave out {others} "
            "(only epochs= and quiet= may be given).\n"
        )


def test_what_cannot_be_resumed_is_refused(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "resume=mie"]) == 2
    assert "mie: there is no such run folder, run name" in capsys.readouterr().err
    assert main(["train", f"resume={runs}"]) == 2
    assert capsys.readouterr().err == f"lpgnn: {runs} is not a run folder: it has no run.json.\n"
    assert main(["train", *TWO_UNITS, "epochs=1"]) == 0
    run = RunFolder(only_run(runs))
    record = run.read_record()

    with run.held():
        assert main(["train", f"resume={run.path}"]) == 2
    said = capsys.readouterr().err
    assert f"{run.path} is still running, as process {os.getpid()} of " in said

    record.state, record.dataset_fingerprint = INTERRUPTED, "0" * 64
    run.write_record(record)
    for epochs in (None, 7):
        with pytest.raises(UserError, match="was trained on other data"):
            reopen_run(str(run.path), epochs)
    assert "epochs: 1\n" in run.config_path.read_text()


def test_the_lock_tells_the_living_from_the_dead(runs: Path) -> None:
    """Whatever the record says of a process, which may be of another machine or somebody else's."""
    assert main(["train", *TWO_UNITS, "epochs=1"]) == 0
    run = RunFolder(only_run(runs))
    for pid, host in ((2**22 + 1, platform.node()), (os.getpid(), platform.node()), (1, "other")):
        raw = json.loads(run.record_path.read_text())
        raw |= {"state": RUNNING, "pid": pid, "host": host}
        run.record_path.write_text(json.dumps(raw))
        assert run.actual_state(run.read_record()) == INTERRUPTED
        with run.held():
            assert run.actual_state(run.read_record()) == RUNNING
    assert main(["train", f"resume={run.path}", "epochs=2", "quiet=true"]) == 0
    assert run.read_record().state == FINISHED


def test_best_pt_is_never_behind_last_pt(
    make_config: MakeConfig, make_tasks: MakeTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two files of a save: the resumed unit still ends the same."""
    config = make_config(f"epochs={EPOCHS}", "checkpoint_every=4", *CLIQUE, "protocol.patience=50")
    (whole,) = make_tasks(config, "whole")
    expected = watch(whole)
    assert expected.selected_epoch > 4
    (killed,) = make_tasks(config, "killed")
    saved = 0

    def save_then_die(path: Path, content: dict[str, Any]) -> None:
        nonlocal saved
        saved += 1
        if saved == 4:
            raise Killed
        save_checkpoint(path, content)

    with monkeypatch.context() as context:
        context.setattr("lpgnn_cli.training.fit.save_checkpoint", save_then_die)
        with pytest.raises(Killed):
            watch(killed)
    assert without_time(watch(killed)) == without_time(expected)
    assert_same(checkpoint(killed, "selected.pt"), checkpoint(whole, "selected.pt"))
