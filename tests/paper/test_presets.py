"""Every preset composes to what its name says, and trains for one step.

Where a preset needs a published dataset, small graphs of the same kind stand in for it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from lpgnn_cli.commands.train import run
from lpgnn_cli.config.compose import compose, conf_dir
from lpgnn_cli.config.dataset import (
    CslConfig,
    NodesConfig,
    PatternConfig,
    TransferConfig,
    TuConfig,
)
from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.restore import restore_config
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.tracking import TrackingConfig
from lpgnn_cli.config.training import HoldoutConfig, KFoldConfig
from lpgnn_cli.data.caching import load_dataset_once
from lpgnn_cli.data.public_splits import PARTS, PUBLIC, public_splits
from lpgnn_cli.data.splits import read_splits
from lpgnn_cli.errors import UserError
from lpgnn_cli.paper.presets import departures, preset_settings, preset_text
from lpgnn_cli.paper.reference import Preset, presets_by_name, reference_tables

FOLDER = conf_dir() / "experiment"
EXPERIMENTS = {path.stem for path in FOLDER.glob("[!_]*.yaml")} | {
    f"reach/{path.stem}" for path in FOLDER.glob("reach/*.yaml")
}
PRESETS = [preset for _, preset in sorted(presets_by_name().items())]
VARIANTS = [preset for preset in PRESETS if preset.variant != "none"]
GRAPHS = 40
# Of chains, which differ in their length alone, the shortest stand for all.
LONG = ("_50", "_100", "_200", "_500", "_1000", "_2000", "tree_5")


@dataclass(frozen=True)
class Kind:
    """What the graphs of a dataset have."""

    classes: int
    labels: int = 0
    attributes: int = 0


KINDS = {
    "PTC_MR": Kind(classes=2, labels=18),
    "NCI1": Kind(classes=2, labels=37),
    "PROTEINS": Kind(classes=2, labels=3, attributes=1),
    "IMDB-BINARY": Kind(classes=2),
    "IMDB-MULTI": Kind(classes=3),
    "ENZYMES": Kind(classes=6, labels=3, attributes=18),
}


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per dataset in TU format, and the index files of those with public splits."""
    root = tmp_path_factory.mktemp("stand-ins")
    for name, kind in KINDS.items():
        (root / name).mkdir()
        for suffix, rows in tu_files(kind).items():
            text = "".join(f"{row}\n" for row in rows)
            (root / name / f"{name}_{suffix}.txt").write_text(text, encoding="utf-8")
    for name in ("CSL", "ENZYMES"):
        for part, graphs in zip(PARTS, np.split(np.arange(GRAPHS), [20, 30]), strict=True):
            folds = [",".join(map(str, np.roll(np.arange(GRAPHS), 7 * f)[graphs])) for f in (0, 1)]
            (root / f"{name}_{part}.index").write_text("\n".join(folds) + "\n", encoding="utf-8")
    save_nodes(root / "nodes.npz")
    return root


def save_nodes(path: Path) -> None:
    """A ring of nodes of two classes, with one split."""
    node = np.arange(GRAPHS)
    masks = {f"{part}_masks": (node % 3 == i)[None] for i, part in enumerate(PARTS)}
    edges = np.stack([node, np.roll(node, 1)], axis=1)
    np.savez(path, node_features=np.eye(GRAPHS), node_labels=node % 2, edges=edges, **masks)


def tu_files(kind: Kind) -> dict[str, list[str]]:
    """Rings of different sizes with chords, so that degrees differ too."""
    random = np.random.RandomState(0)
    sizes = random.randint(5, 9, GRAPHS)
    starts = np.cumsum(sizes) - sizes + 1
    edges = [
        (start + node, start + (node + step) % size)
        for start, size in zip(starts, sizes, strict=True)
        for step, nodes in ((1, size), (2, random.randint(1, 3)))
        for node in range(nodes)
    ]
    files = {
        "A": [f"{a}, {b}" for edge in edges for a, b in (edge, edge[::-1])],
        "graph_indicator": [str(g + 1) for g, size in enumerate(sizes) for _ in range(size)],
        "graph_labels": [str(g % kind.classes) for g in range(GRAPHS)],
    }
    if kind.labels:
        files["node_labels"] = [str(node % kind.labels) for node in range(sizes.sum())]
    if kind.attributes:
        rows = random.normal(size=(sizes.sum(), kind.attributes)).round(3)
        files["node_attributes"] = [", ".join(map(str, row)) for row in rows.tolist()]
    return files


def typed(preset: Preset) -> TrainConfig:
    return restore_config(yaml.safe_load(preset_text(preset)))


def shrink(config: TrainConfig, stand_ins: Path) -> None:
    """One step on few graphs, with all else as the preset says."""
    config.epochs, config.figures, config.threads, config.device = 1, False, 1, "cpu"
    config.inference.steps, config.quiet = 2, True
    config.tracking = TrackingConfig(name="none")
    dataset, protocol = config.dataset, config.protocol
    protocol.seeds, protocol.workers = 1, "1"
    if isinstance(dataset, TuConfig) and not dataset.embedded:
        dataset.path = str(stand_ins / dataset.name)
    elif isinstance(dataset, CslConfig):
        dataset.copies = GRAPHS // len(dataset.skips)
    elif isinstance(dataset, PatternConfig | TransferConfig):
        dataset.graphs = GRAPHS
    if isinstance(dataset, TransferConfig):
        dataset.held_out = GRAPHS
    elif isinstance(dataset, NodesConfig):
        dataset.path = str(stand_ins / "nodes.npz")
    if isinstance(protocol, KFoldConfig):
        protocol.folds = 2
    elif isinstance(protocol, HoldoutConfig) and protocol.splits == PUBLIC:
        protocol.splits = str(stand_ins)


def test_presets_and_reference_name_each_other() -> None:
    assert {preset.experiment for preset in PRESETS} == EXPERIMENTS


@pytest.mark.parametrize(
    "preset",
    [preset for preset in PRESETS if not preset.experiment.endswith(LONG)],
    ids=lambda preset: preset.name,
)
def test_every_preset_trains_for_one_step(
    preset: Preset, stand_ins: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_DATA", str(runs / "nothing-here"))
    config = typed(preset)
    assert config.name == preset.name
    shrink(config, stand_ins)
    assert 0 <= run(config) <= 1
    (folder,) = (runs / "train").glob("*/*")
    assert folder.name.endswith(f"-{preset.name}")


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


@pytest.mark.parametrize(
    "preset", [p for p in VARIANTS if p.variant != "letter"], ids=lambda preset: preset.name
)
def test_variants_differ_from_their_row_by_one_thing(preset: Preset) -> None:
    own, theirs = preset_settings(preset), preset_settings(Preset(preset.experiment))
    differing = {key: own[key] for key in own if own[key] != theirs[key]}
    change = {
        "control": ("states", "frozen"),
        "oneshot": ("updates", "one_shot"),
        "no_adjoint": ("adjoint", "false"),
    }
    setting, value = change[preset.variant]
    assert differing.pop(f"propagation.{setting}") == value
    if preset.variant == "no_adjoint":
        # Smaller gradients: held by the same decay, the control would lose by that alone.
        for decay in ("alike.weight_decay", "optim.decoupled_decay"):
            differing.pop(decay, None)
    # Frozen states hand zeros up, so deeper layers would see nothing at all.
    assert differing in ({}, {"propagation.hand_up": "transition"})
    config = typed(preset)
    assert isinstance(config.propagation, LagrangianConfig)
    if preset.variant == "control":
        assert config.layers == 1 or config.propagation.hand_up == "transition"


@pytest.mark.parametrize(
    "preset", [p for p in VARIANTS if p.variant == "letter"], ids=lambda preset: preset.name
)
def test_the_letter_is_that_of_the_paper(preset: Preset) -> None:
    config = typed(preset)
    settings = config.propagation
    assert isinstance(settings, LagrangianConfig)
    assert (settings.updates, settings.states, settings.upper) == ("gradient", "free", "own")
    assert settings.supervise_states
    assert (settings.multiplier, settings.multiplier_start, settings.gain) == ("node", 0.0, None)
    assert (config.readout.source, config.inference.name) == ("auto", "lagrangian")
    assert (config.optim.schedule, config.optim.decay) == ("step", 1.0)
    assert config.optim.batch_graphs is None
    assert config.readout.node_hidden == []


def test_presets_that_share_a_cell_are_the_same_experiment() -> None:
    cells = [c for t in reference_tables().values() for r in t.rows for c in r.cells.values()]
    shared = {cell.presets for cell in cells if len(cell.presets) > 1}
    assert shared
    for first, *others in shared:
        for other in others:
            assert preset_settings(other) == preset_settings(first)


def test_departures_name_what_changed_and_nothing_else() -> None:
    karate = Preset("karate")
    settings = dict(preset_settings(karate))
    assert not {"name", "quiet", "data.root", "tracking.name", "protocol.workers"} & set(settings)
    assert departures(karate, {**settings, "layers": "2"}) == ["layers=2 instead of 3"]
    settings.pop("precision")  # a setting that came later than the run
    settings["dataset.colour"] = "blue"  # one that went
    assert departures(karate, settings) == []


def test_public_splits_are_the_published_ones_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "splits"
    folder.mkdir()
    monkeypatch.setenv("LPGNN_SPLITS", str(folder))
    for part in PARTS:
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
    config = typed(Preset("csl_lp"))
    splits = read_splits(public_splits("csl"), load_dataset_once(config.dataset, None, 0))
    sizes = {tuple(len(p) for p in (s.train, s.val, s.test) if p is not None) for s in splits}
    assert (len(splits), sizes) == (5, {(90, 30, 30)})
    targets = load_dataset_once(config.dataset, None, 0).batch.targets
    # Stratified by class in the order of the classes: this is what makes them fit our graphs.
    assert all(targets[s.test].bincount().tolist() == [3] * 10 for s in splits)
