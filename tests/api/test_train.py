"""`lpgnn.train` is `lpgnn train`: the same numbers, sentences and folders."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser

import lpgnn_cli as lpgnn
from lpgnn_cli.api.words import flatten, train_words
from lpgnn_cli.cli import main

Rows = list[dict[str, float]]


def command(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lpgnn_cli", *words], capture_output=True, text=True
    )


def newest(runs: Path) -> lpgnn.Run:
    return lpgnn.Run(max(runs.glob("train/*/*"), key=lambda path: path.stat().st_ctime_ns))


def without_time(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("time", "seconds")}


def curves(run: lpgnn.Run) -> dict[str, Rows]:
    return {fold.name: [without_time(row) for row in run.metrics(fold.name)] for fold in run.folds}


def test_the_numbers_are_those_of_the_command_line(runs: Path, small: dict[str, Any]) -> None:
    settings = flatten({"dataset": "mutag", "lr": {"theta": 1e-3}, **small})
    settings["aggregator.dropout"] = 0.3
    torch.manual_seed(1)  # what a notebook did before must not count
    torch.set_default_dtype(torch.float64)
    try:
        run = lpgnn.train(**settings)
    finally:
        torch.set_default_dtype(torch.float32)
    done = command(["train", *train_words(settings | {"protocol.workers": 2})])
    assert done.returncode == 0, done.stderr
    same = newest(runs)
    assert same.folder != run.folder
    assert curves(run) == curves(same)
    assert without_time(run.summary) == without_time(same.summary)
    assert {**run.config, "protocol": 0} == {**same.config, "protocol": 0}


def test_a_run_tells_what_came_out(small: dict[str, Any]) -> None:
    run = lpgnn.train("layers=2", dataset="mutag", name="it's mine", **small)
    assert run.state == "finished"
    assert run.accuracy == run.summary["honest/accuracy_mean"]
    assert [fold.name for fold in run.folds] == ["fold-00", "fold-01"]
    assert math.isclose(run.accuracy, sum(fold.accuracy for fold in run.folds) / 2)
    assert {(fold.state, fold.epochs, fold.selected_epoch) for fold in run.folds} == {
        ("finished", 3, 3)
    }
    rows = run.metrics("fold-01")
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    last = [run.metrics(fold.name)[-1]["test/accuracy"] for fold in run.folds]
    assert math.isclose(run.summary["persistent/accuracy_mean"], sum(last) / 2)
    assert (run.config["layers"], run.config["name"]) == (2, "it's mine")
    assert "finished" in repr(run)
    assert run._repr_html_().count("<tr>") == 3
    assert lpgnn.Run(str(run.folder)).accuracy == run.accuracy
    with pytest.raises(lpgnn.UserError, match="has no unit fold-07; it has fold-00, fold-01"):
        run.metrics("fold-07")
    with pytest.raises(lpgnn.UserError, match="is not a run folder"):
        lpgnn.Run(run.folder / "units")


def test_the_record_has_the_command_that_does_the_same(small: dict[str, Any]) -> None:
    run = lpgnn.train("layers=2", dataset="mutag", **small)
    argv = lpgnn.Run(run)._run.read_record().argv
    assert argv[:3] == ["train", "layers=2", "dataset=mutag"]
    parsed = OverridesParser.create().parse_overrides(argv[1:])
    assert {o.key_or_group: o.value() for o in parsed}["protocol.folds"] == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"datset": "mutag"},
        {"dataset": "mutg"},
        {"layers": 0},
        {"epochs": "two"},
        {"lr": {"thet": 1}},
        {"g": {"eps": 0.1}},
        {"g": None},
        {"state": 8},
        {"epochs": 1.5},
        {"lr.theta": math.nan},
        {"dataset": "karate", "protocol": "kfold"},
        {"resume": "nowhere"},
        {"resume": "nowhere", "seed": 3},
        {"dataset": "mutag", "g": "lin_eps", "variant": "oneshot"},
        {"dataset": "graphs"},
        {"dataset": "graphs", "dataset.path": "nowhere.npz"},
    ],
    ids=str,
)
def test_the_sentences_are_those_of_the_command_line(
    settings: dict[str, Any], runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(lpgnn.UserError) as raised:
        lpgnn.train(**settings)
    assert main(["train", *train_words(flatten(settings))]) == 2
    said = capsys.readouterr().err.strip()
    assert said == f"lpgnn: {' '.join(str(raised.value).split())}"
    assert not list(runs.glob("train/*/*"))


def test_a_run_that_diverges_says_where_it_is(small: dict[str, Any]) -> None:
    with pytest.raises(lpgnn.RunFailed, match="the Lagrangian is not finite") as raised:
        lpgnn.train("recipe=none", dataset="mutag", lr={"theta": 1e30, "state": 1e30}, **small)
    assert raised.value.folder is not None
    assert lpgnn.Run(raised.value.folder).state == "diverged"


def test_a_run_is_resumed_as_if_it_had_never_stopped(small: dict[str, Any]) -> None:
    # The recipe's schedule is planned over all epochs, so more of them would be another plan.
    plan = {"optim.schedule": "step"}
    whole = lpgnn.train(dataset="mutag", **{**small, **plan, "epochs": 5})
    part = lpgnn.train(dataset="mutag", **small, **plan)
    resumed = lpgnn.train(resume=part, epochs=5)
    assert resumed.folder == part.folder
    assert curves(resumed) == curves(whole)
    assert resumed.accuracy == whole.accuracy
    with pytest.raises(lpgnn.UserError, match="leave out seed"):
        lpgnn.train(resume=part, seed=1)


def test_the_caller_finds_torch_hydra_and_signals_as_they_were(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a process that has not met lpgnn: none of its groups are known to Hydra.
    store = ConfigStore.instance()
    bare = {
        key: value
        for key, value in store.repo.items()
        if key in ("hydra", "_dummy_empty_config_.yaml")
    }
    monkeypatch.setattr(store, "repo", bare)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "app.yaml").write_text("dataset: mine\n")
    torch.set_num_threads(2)
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    with initialize_config_dir(version_base="1.2", config_dir=str(tmp_path / "conf")):
        config = compose("app", overrides=["dataset=theirs"], return_hydra_config=True)
        HydraConfig.instance().set_config(config)
        torch.manual_seed(7)
        with torch.no_grad():  # around us, and none of our business
            lpgnn.train(dataset="karate", **{**small, "protocol": {"workers": 1}})
            assert not torch.is_grad_enabled()
        drawn = torch.rand(3)
        assert HydraConfig.get().overrides.task == ["dataset=theirs"]
        assert compose("app", overrides=["dataset=other"]).dataset == "other"
    HydraConfig.instance().cfg = None
    torch.manual_seed(7)
    assert torch.equal(drawn, torch.rand(3))
    assert torch.get_num_threads() == 2
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_calls_from_several_threads_take_turns(small: dict[str, Any]) -> None:
    small["aggregator"] = {"dropout": 0.5}  # draws numbers in every epoch
    found: dict[int, lpgnn.Run] = {}

    def work(seed: int) -> None:
        found[seed] = lpgnn.train(dataset="mutag", seed=seed, **small)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, run in found.items():
        assert curves(run) == curves(lpgnn.train(dataset="mutag", seed=seed, **small))
    assert len(found) == 2


def test_ctrl_c_keeps_the_checkpoint_and_raises(small: dict[str, Any], runs: Path) -> None:
    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not list(runs.glob("train/*/*/units/fold-00/metrics.csv")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(lpgnn.Interrupted, match=r"go on with lpgnn.train\(resume=") as raised:
        lpgnn.train(dataset="mutag", **{**small, "epochs": 100_000})
    thread.join()
    assert isinstance(raised.value, KeyboardInterrupt)
    stopped = lpgnn.Run(raised.value.folder)
    assert stopped.state == "interrupted"
    assert (stopped.folder / "units" / "fold-00" / "last.pt").is_file()
    epochs = len(stopped.metrics("fold-00")) + 1
    assert lpgnn.train(resume=stopped, epochs=epochs).state == "finished"


PLAIN = """
import lpgnn_cli as lpgnn
print("the script runs")
settings = dict(tracking="none", figures=False, quiet=True, device="cpu", epochs=2)
run = lpgnn.train(dataset="mutag", protocol={"folds": 2, "workers": 2}, **settings)
board = lpgnn.sweep(dataset="karate", seed=[0, 1], **settings)
print(run.state, len(board))
"""
# What a guarded script does before, here to every worker, is done in the workers as well.
GUARDED = """
import os
import lpgnn_cli as lpgnn
from lpgnn_cli.training import execute
train_unit = execute.train_unit
def tell(*args):
    open(f"process-{os.getpid()}", "w").close()
    return train_unit(*args)
execute.train_unit = tell
if __name__ == "__main__":
    print("the script runs")
    settings = dict(tracking="none", figures=False, quiet=True, device="cpu", epochs=2)
    run = lpgnn.train(dataset="mutag", protocol={"folds": 2, "workers": 2}, **settings)
    print(run.state, len(run.folds))
"""


@pytest.mark.parametrize("script", [PLAIN, GUARDED], ids=["plain", "guarded"])
def test_a_script_runs_once_with_a_main_guard_or_without(
    script: str, tmp_path: Path, runs: Path
) -> None:
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the script runs") == 1
    assert done.stdout.endswith("finished 2\n")
    assert len(list(runs.glob("train/*/*"))) == 1
    assert len(list(tmp_path.glob("process-*"))) == (2 if script == GUARDED else 0)


def test_progress_in_a_notebook_is_plain_lines(
    small: dict[str, Any],
    make_graphs: Callable[..., list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Rich asks this; its live displays then want ipywidgets, and warn where they are missing.
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    lpgnn.train(dataset=make_graphs(), **{**small, "quiet": False, "tracking": "mlflow"})
    said = capsys.readouterr()
    assert "2 units, 3 epochs" in said.out
    assert "last epoch (honest)" in said.out
    assert "ipywidgets" not in said.out + said.err
