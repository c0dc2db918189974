"""The best mean epoch from zero, with the weights that every unit had in that epoch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.metrics import ACCURACY
from lpgnn_cli.run import compute
from lpgnn_cli.runfolder import FINISHED, RunFolder, RunRecord
from lpgnn_cli.runsummary import RunSummary
from lpgnn_cli.training.closing import score_part
from lpgnn_cli.training.execute import execute
from lpgnn_cli.training.experiment import Experiment, claim, start_run
from lpgnn_cli.training.fit import UnitFit
from lpgnn_cli.training.history import FILE, WeightHistory, read_weights, record_size

from .conftest import MakeConfig, MakeTasks

SMALL = ("dataset.graphs=8", "dataset.nodes=5", "state=[4]", "inference.steps=20")
CLIQUE = ("dataset=clique", *SMALL, "protocol=kfold", "protocol.folds=2", "epochs=6")


def start(config: TrainConfig) -> tuple[Experiment, RunFolder, RunRecord]:
    experiment = Experiment.prepare(config)
    folder, record = start_run(experiment)
    claim(folder, record)
    return experiment, folder, record


def histories(folder: RunFolder) -> list[Path]:
    return sorted(folder.path.glob(f"units/*/{FILE}"))


def test_it_is_what_a_run_that_ends_there_finds(make_config: MakeConfig) -> None:
    """The weights of an epoch are those with which a shorter run ends."""
    config = make_config(*CLIQUE)
    experiment, folder, record = start(config)
    summary = compute(experiment, folder, record, [])
    best = summary.best_epoch
    assert best is not None
    config.epochs = best
    shorter, other, record = start(config)
    compute(shorter, other, record, [])
    for unit in record.units:
        mine, theirs = folder.read_result(unit.name), other.read_result(unit.name)
        assert mine is not None
        assert theirs is not None
        assert mine.best_mean_epoch == theirs.epochs == best
        assert mine.best_mean_epoch_from_zero == theirs.from_zero
    there = RunSummary.read(other).honest
    assert summary.best_from_zero.accuracy == there.accuracy
    assert not histories(folder), "they are deleted once they have served"


def test_an_interrupted_unit_keeps_its_weights_and_goes_on_with_them(
    make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(*CLIQUE, "checkpoint_every=2")
    whole, parted = make_tasks(config, "whole")[0], make_tasks(config, "parted")[0]
    UnitFit(whole).fit(lambda *_: None, lambda: False)
    seen: list[int] = []
    UnitFit(parted).fit(lambda epoch, _: seen.append(epoch), lambda: len(seen) == 3)
    UnitFit(parted).fit(lambda *_: None, lambda: False)
    mine, theirs = (RunFolder(t.run).unit(t.unit.name) / FILE for t in (parted, whole))
    assert mine.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("words", [("propagation=layers",), ("propagation.states=frozen",)])
def test_where_nothing_persists_nothing_is_kept_or_scored_again(
    words: tuple[str, ...], make_config: MakeConfig
) -> None:
    experiment, folder, record = start(make_config(*CLIQUE, *words))
    execute(experiment.tasks(folder), 1, [])
    assert not histories(folder)
    summary = compute(experiment, folder, record, [])
    assert summary.path_free
    assert not summary.best_from_zero.metrics
    assert not summary.persistent.metrics


def test_a_bound_that_is_too_small_forbids_it_and_the_run_says_so(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*CLIQUE, "tracking=none", "figures=false", "quiet=true", "protocol.workers=1"]
    assert main(["train", "recipe=none", *words, "rescore_mb=0"]) == 0
    said = capsys.readouterr().out
    assert "were not kept (rescore_mb)" in said
    (folder,) = runs.glob("train/*/*")
    assert not RunSummary.read(RunFolder(folder)).best_from_zero.metrics
    assert not histories(RunFolder(folder))


def test_weights_come_back_as_they_were(
    make_config: MakeConfig, make_tasks: MakeTasks, tmp_path: Path
) -> None:
    network = UnitFit(make_tasks(make_config(*CLIQUE, "readout.norm=batch"))[0]).propagation.network
    path = tmp_path / "w"
    limit = 3 * record_size(network)
    history = WeightHistory.open(path, network, done=0, epochs=3, limit=limit)
    states = []
    for _ in range(3):
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.normal_()
        states.append({k: v.clone() for k, v in network.state_dict().items()})
        history.write(network)
    history.close()
    for epoch, state in enumerate(states, start=1):
        found = read_weights(path, epoch, network.state_dict())
        assert found is not None
        assert all(torch.equal(found[name], state[name]) for name in state)
    assert read_weights(path, 4, network.state_dict()) is None
    # Going on after two epochs forgets the third; epochs that are missing make it useless.
    WeightHistory.open(path, network, done=2, epochs=3, limit=limit).close()
    assert path.stat().st_size == 2 * record_size(network)
    WeightHistory.open(path, network, done=3, epochs=3, limit=limit).close()
    assert not path.exists()


def test_what_is_scored_is_what_eval_finds(make_config: MakeConfig, make_tasks: MakeTasks) -> None:
    (task, *_) = make_tasks(make_config(*CLIQUE))
    fit = UnitFit(task)
    result = fit.fit(lambda *_: None, lambda: False)
    assert result.state == FINISHED
    again = score_part(fit.propagation, "test", fit.parts["test"], fit.config.inference)
    assert result.from_zero == again.from_zero
    assert result.persistent[ACCURACY.name] == result.metrics["test/accuracy"]
