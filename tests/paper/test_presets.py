"""Every preset composes to what its name says, and trains for one step."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from lpgnn_cli.config.compose import compose, conf_dir
from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.restore import restore_config
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.training import HoldoutConfig, KFoldConfig
from lpgnn_cli.data import make_splits
from lpgnn_cli.data.caching import load_dataset_once
from lpgnn_cli.data.public_splits import public_splits
from lpgnn_cli.data.splits import read_splits
from lpgnn_cli.errors import UserError
from lpgnn_cli.paper.presets import departures, preset_config, preset_text
from lpgnn_cli.paper.reference import preset_names, reference_tables
from lpgnn_cli.run import compute
from lpgnn_cli.runfolder import FINISHED, Unit
from lpgnn_cli.training.experiment import Experiment, Fold, claim, start_run

PRESETS = sorted(path.stem for path in (conf_dir() / "experiment").glob("[!_]*.yaml"))
GRAPHS = 40


def typed(preset: str) -> TrainConfig:
    return restore_config(yaml.safe_load(preset_text(preset)))


def test_presets_and_reference_name_each_other() -> None:
    assert set(PRESETS) == preset_names()


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_for_one_step(preset: str) -> None:
    config = typed(preset)
    assert config.name == preset
    elsewhere = isinstance(config.dataset, TuConfig) and not config.dataset.embedded
    if elsewhere and not os.environ.get("LPGNN_DATA"):
        pytest.skip("LPGNN_DATA names no folder with datasets")
    config.epochs, config.figures, config.threads, config.device = 1, False, 1, "cpu"
    config.inference.steps = 2
    dataset = load_dataset_once(config.dataset, None, config.seed)
    if dataset.parts is None and dataset.batch.num_graphs > 1:
        few = torch.linspace(0, dataset.batch.num_graphs - 1, GRAPHS).long()
        dataset = replace(dataset, batch=dataset.batch.subset(few))
    if isinstance(config.protocol, KFoldConfig):
        config.protocol.folds = 2
    elif isinstance(config.protocol, HoldoutConfig):
        config.protocol.splits = None
    split = make_splits(config.protocol, dataset, config.seed)[0]
    fold = Fold(Unit("fold-00", 0, config.seed), dataset, split)
    experiment = Experiment(config, [fold], torch.device("cpu"), workers=1)
    run, record = start_run(experiment)
    claim(run, record)
    summary = compute(experiment, run, record, [])
    assert (record.state, record.reason) == (FINISHED, "")
    assert 0 <= summary.honest.accuracy.mean <= 1
    assert record.versions["torch"] == torch.__version__


def test_what_a_preset_says_is_what_the_command_composes() -> None:
    config = compose("train", ["experiment=imdb_b_k2_lp_gin"])
    assert (config.dataset.name, config.aggregator.name, config.layers) == ("IMDB-BINARY", "gin", 2)
    assert config.propagation.name == "lagrangian"
    assert compose("train", ["experiment=imdb_b_k2_lp_gin", "layers=4"]).layers == 4


def test_recipes_follow_the_dataset_of_a_preset_and_the_preset_has_the_last_word(
    tmp_path: Path,
) -> None:
    """The composition that `conf/train.yaml` promises, on a conf/ of its own recipes."""
    import shutil

    from lpgnn_cli.config.compose import load, make_loader

    conf = tmp_path / "conf"
    shutil.copytree(conf_dir(), conf)
    recipe = "# @package _global_\nepochs: 77\nlayers: 3\n"
    for folder in ("lagrangian", "layers"):
        (conf / "recipe" / folder).mkdir(exist_ok=True)
        (conf / "recipe" / folder / "ptc.yaml").write_text(recipe, encoding="utf-8")
    loader = make_loader(config_path=str(conf))
    chosen = load(loader, "train", ["experiment=ptc_gin"])
    assert (chosen.epochs, chosen.layers) == (77, 5)
    assert load(loader, "train", ["dataset=ptc"]).layers == 3
    assert load(loader, "train", ["experiment=ptc_gin", "epochs=5"]).epochs == 5


@pytest.mark.parametrize("preset", [p for p in PRESETS if p.endswith("_control")])
def test_controls_differ_from_their_row_only_by_frozen_states(preset: str) -> None:
    base = preset.removesuffix("_control")
    base = base if base in PRESETS else f"{base}_squared"
    own, theirs = preset_config(preset), preset_config(base)
    differing = {key for key in own if own[key] != theirs[key]}
    assert differing - {"propagation.hand_up"} == {"propagation.states"}
    config = typed(preset)
    assert isinstance(config.propagation, LagrangianConfig)
    # Frozen states hand zeros up, so deeper layers would see nothing at all.
    assert config.layers == 1 or config.propagation.hand_up == "transition"


def test_presets_that_share_a_cell_are_the_same_experiment() -> None:
    cells = [c for t in reference_tables().values() for r in t.rows for c in r.cells.values()]
    shared = {cell.presets for cell in cells if len(cell.presets) > 1}
    assert shared
    for first, *others in shared:
        for other in others:
            assert preset_config(other) == preset_config(first)


def test_departures_name_what_changed_and_nothing_else() -> None:
    flat = dict(preset_config("karate"))
    shown = {"name": "x", "quiet": "true", "data.root": "/d", "tracking.name": "none"}
    assert departures("karate", {**flat, **shown, "protocol.workers": "3"}) == []
    assert departures("karate", {**flat, "layers": "2"}) == ["layers=2 instead of 3"]
    flat.pop("precision")  # a setting that came later than the run
    assert departures("karate", flat) == []


def test_public_splits_are_the_published_ones_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "splits"
    folder.mkdir()
    monkeypatch.setenv("LPGNN_SPLITS", str(folder))
    for part in ("train", "val", "test"):
        (folder / f"CSL_{part}.index").write_text("0,1\n", encoding="utf-8")
    with pytest.raises(UserError, match="other folds of CSL than the public ones"):
        public_splits("csl")
    with pytest.raises(UserError, match="only of CSL and ENZYMES"):
        public_splits("MUTAG")


def test_the_public_folds_of_csl_are_five_of_90_30_30(monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.environ.get("LPGNN_DATA")
    if not data or not (Path(data).parent / "splits" / "CSL_train.index").is_file():
        pytest.skip("LPGNN_DATA has no public splits beside it")
    monkeypatch.delenv("LPGNN_SPLITS", raising=False)
    config = typed("csl_lp")
    splits = read_splits(public_splits("csl"), load_dataset_once(config.dataset, None, 0))
    sizes = {tuple(len(p) for p in (s.train, s.val, s.test) if p is not None) for s in splits}
    assert (len(splits), sizes) == (5, {(90, 30, 30)})
    targets = load_dataset_once(config.dataset, None, 0).batch.targets
    # Stratified by class in the order of the classes: this is what makes them fit our graphs.
    assert all(targets[s.test].bincount().tolist() == [3] * 10 for s in splits)
