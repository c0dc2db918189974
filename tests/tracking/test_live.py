"""The follower process: live, in parallel, against servers that are away, and not at all."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lpgnn_cli import tracking
from lpgnn_cli.cli import main
from lpgnn_cli.config.tracking import MlflowConfig, TrackingConfig
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.tracking.mirror import RUN_TAG
from lpgnn_cli.tracking.state import read_state
from lpgnn_cli.tracking.store import default_uri, open_client
from lpgnn_cli.tracking.view import UNIT_TAG

from ..conftest import present
from .conftest import MakeTrainer, Server

HERE = Path(__file__).parent


def assert_complete_and_once(run: RunFolder, uri: str) -> None:
    """The store has one parent, one child per unit, every row of every unit once, and no more."""
    client = open_client(uri)
    experiment = present(client.get_experiment_by_name("lpgnn"))
    record = run.read_record()
    found = client.search_runs(
        [experiment.experiment_id], f"tags.`{RUN_TAG}` = '{record.id}'", max_results=1000
    )
    children = {r.data.tags[UNIT_TAG]: r.info.run_id for r in found if UNIT_TAG in r.data.tags}
    assert len(found) == len(record.units) + 1
    assert sorted(children) == [unit.name for unit in record.units]
    for name, run_id in children.items():
        rows = run.read_metrics(name)
        for metric in ("train/accuracy", "test/violation_mean"):
            points = client.get_metric_history(run_id, metric)
            sent = [(point.step, point.timestamp, point.value) for point in points]
            assert sent == [(row["epoch"], row["time"], row[metric]) for row in rows]


def run_four_at_once(runs: Path) -> None:
    command = [sys.executable, str(HERE / "fake_trainer.py"), str(runs)]
    processes = [
        subprocess.Popen([*command, f"run{i}", "3", "40"], stderr=subprocess.PIPE, text=True)
        for i in range(4)
    ]
    for process in processes:
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0
        assert said == ""
    folders = [path.parent for path in runs.glob("train/*/*/run.json")]
    assert len(folders) == 4
    for folder in folders:
        assert not (folder / "tracking.log").exists()
        assert_complete_and_once(RunFolder(folder), default_uri())
    assert list(Path.cwd().iterdir()) == []


def test_four_processes_make_and_fill_one_new_store(runs: Path) -> None:
    run_four_at_once(runs)


@pytest.mark.slow
@pytest.mark.parametrize("repeat", range(5))
def test_four_processes_make_and_fill_one_new_store_repeatedly(runs: Path, repeat: int) -> None:
    run_four_at_once(runs)


def test_training_goes_on_without_a_server_and_sync_sends_all_later(
    make_trainer: MakeTrainer, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    trainer = make_trainer(units=2, epochs=30)
    live = tracking.start(MlflowConfig("mlflow", server.uri, "lpgnn"), trainer.run, said.append)
    assert live
    deadline = time.monotonic() + 60

    def wait_for_the_warning(unit: str, epoch: int) -> None:
        while epoch == 10 and not said and time.monotonic() < deadline:
            time.sleep(0.1)
            live.epoch_done(unit, epoch, {})
        live.epoch_done(unit, epoch, {})

    trainer.train(wait_for_the_warning)
    assert len(said) == 1
    assert "cannot be reached (Connection refused)" in said[0]
    trainer.finish()
    live.run_ended(trainer.run, {})
    assert len(said) == 2
    assert f"lpgnn sync {trainer.run.path}" in said[1]
    assert not present(read_state(trainer.run)).complete

    assert main(["sync", str(trainer.run.path)]) == 1
    assert "could not be sent" in capsys.readouterr().err

    server.start()
    assert main(["sync", str(trainer.run.path)]) == 0
    assert_complete_and_once(trainer.run, server.uri)
    assert main(["sync", str(trainer.run.path)]) == 0
    assert "already has everything" in capsys.readouterr().out


@pytest.mark.slow
def test_a_server_that_never_answers_does_not_hold_up_the_run(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    said: list[str] = []
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(100)
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        trainer = make_trainer(units=1, epochs=5)
        live = tracking.start(MlflowConfig("mlflow", uri, "lpgnn"), trainer.run, said.append)
        assert live
        began = time.monotonic()
        trainer.train(lambda unit, epoch: live.epoch_done(unit, epoch, {}))
        assert time.monotonic() - began < 1
        trainer.finish()
        live.run_ended(trainer.run, {})
    assert len(said) == 1
    assert f"lpgnn sync {trainer.run.path}" in said[0]
    assert present(read_state(trainer.run)).state == "unreachable"


@pytest.mark.slow
def test_server_killed_and_restarted_in_mid_run(make_trainer: MakeTrainer, server: Server) -> None:
    server.start()
    said: list[str] = []
    trainer = make_trainer(units=3, epochs=60)
    live = tracking.start(MlflowConfig("mlflow", server.uri, "lpgnn"), trainer.run, said.append)
    assert live

    def train(unit: int, until: Callable[[], bool]) -> None:
        def on_epoch(name: str, epoch: int) -> None:
            live.epoch_done(name, epoch, {})
            deadline = time.monotonic() + 60
            while epoch == 30 and not until() and time.monotonic() < deadline:
                time.sleep(0.1)
                live.epoch_done(name, epoch, {})

        trainer.train_unit(trainer.record.units[unit], on_epoch)

    def rows_sent(unit: str) -> int:
        state = read_state(trainer.run)
        return state.units[unit].rows if state and unit in state.units else 0

    train(0, until=lambda: rows_sent("fold-00") >= 30)
    assert rows_sent("fold-00") >= 30
    server.kill()
    train(1, until=lambda: bool(said))
    assert len(said) == 1
    server.start()
    train(2, until=lambda: present(read_state(trainer.run)).state == "ok")
    trainer.finish()
    live.run_ended(trainer.run, {})
    assert len(said) == 1
    assert present(read_state(trainer.run)).complete
    assert_complete_and_once(trainer.run, server.uri)
    assert main(["sync", str(trainer.run.path)]) == 0
    assert_complete_and_once(trainer.run, server.uri)


def test_a_killed_trainer_leaves_a_complete_mirror(runs: Path, empty_store: Path) -> None:
    (runs / "mlflow.db").write_bytes(empty_store.read_bytes())
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import fake_trainer as f; "
        "from pathlib import Path; t = f.FakeTrainer(Path(sys.argv[2]), units=1, epochs=5); "
        "f.tracking.start(f.MlflowConfig('mlflow', None, 'lpgnn'), t.run); t.train(); "
        "os.kill(os.getpid(), 9)"
    )
    code = subprocess.run([sys.executable, "-c", script, str(HERE), str(runs)], check=False)
    assert code.returncode == -9
    (record,) = runs.glob("train/*/*/run.json")
    run = RunFolder(record.parent)
    assert run.actual_state(run.read_record()) == "interrupted"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not ((s := read_state(run)) and s.complete):
        time.sleep(0.2)
    assert_complete_and_once(run, default_uri())
    assert present(read_state(run)).parent.status == "KILLED"


def test_without_tracking_nothing_of_mlflow_is_imported(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(units=1, epochs=1)
    assert tracking.start(TrackingConfig("none"), trainer.run) is None
    script = (
        "import sys; from lpgnn_cli import tracking; import lpgnn_cli.commands.runs; "
        "from lpgnn_cli.config.tracking import TrackingConfig; "
        "from lpgnn_cli.runfolder import RunFolder; from pathlib import Path; "
        "assert tracking.start(TrackingConfig('none'), RunFolder(Path(sys.argv[1]))) is None; "
        "assert not [m for m in sys.modules if m.split('.')[0] in ('mlflow', 'sqlalchemy')]"
    )
    subprocess.run([sys.executable, "-c", script, str(trainer.run.path)], check=True)
    assert not (trainer.run.path / "tracking.json").exists()
