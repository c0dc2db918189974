"""Epochs and layers that the data decides on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.caching import load_dataset_once
from lpgnn_cli.data.catalogue import CATALOGUE
from lpgnn_cli.errors import UserError
from lpgnn_cli.paper.presets import composed_settings
from lpgnn_cli.training.experiment import Experiment, read_config, reopen_run, start_run
from lpgnn_cli.training.suited import kinds_of_labels, layers_for, length_for, suited

from .conftest import SOBER

WriteGraphs = Callable[..., Path]


@pytest.fixture
def write_graphs(tmp_path: Path) -> WriteGraphs:
    """Paths of four nodes in TU format, whose labels go round."""

    def write(graphs: int, kinds: int) -> Path:
        folder = tmp_path / f"PATHS_{graphs}_{kinds}"
        folder.mkdir()
        first = 4 * np.arange(graphs) + 1
        files: dict[str, list[object]] = {
            "A": [
                f"{a}, {b}"
                for v in first
                for u in range(v, v + 3)
                for a, b in ((u, u + 1), (u + 1, u))
            ],
            "graph_indicator": [1 + node // 4 for node in range(4 * graphs)],
            "graph_labels": [graph % 2 for graph in range(graphs)],
            "node_labels": [node // 2 % kinds for node in range(4 * graphs)],
        }
        for name, lines in files.items():
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{folder.name}_{name}.txt").write_text(text, encoding="utf-8")
        return folder

    return write


def config_of(folder: Path, *words: str) -> TrainConfig:
    """That of `lpgnn train`, as shipped, on these graphs."""
    where = f"dataset.name={folder.name}", f"dataset.path={folder}"
    return compose("train", [*SOBER, "dataset=tu", *where, "aggregator=diffusion", *words])


@pytest.mark.parametrize(
    ("graphs", "kinds", "batch", "epochs"),
    [
        (199, 7, 64, 100),
        (200, 4, 64, 300),
        (1000, 3, 64, 100),
        (1000, 4, 64, 300),
        (1280, 4, 64, 300),
        (1281, 4, 64, 200),
        (4110, 37, 64, 100),
        (100_000, 37, 64, 100),
        (100_000, 37, None, 300),
    ],
)
def test_many_kinds_of_labels_are_learnt_slowly_and_many_graphs_have_many_steps(
    graphs: int, kinds: int, batch: int | None, epochs: int
) -> None:
    assert length_for(graphs, kinds, batch) == epochs


@pytest.mark.parametrize(
    ("graphs", "kinds", "layers"), [(999, 37, 1), (1000, 4, 3), (1000, 3, 1), (4110, 37, 3)]
)
def test_a_thousand_graphs_of_many_kinds_of_labels_have_three_layers(
    graphs: int, kinds: int, layers: int
) -> None:
    assert layers_for(graphs, kinds) == layers


@pytest.mark.parametrize(
    ("graphs", "kinds", "epochs"), [(200, 4, 300), (200, 3, 100), (180, 4, 100)]
)
def test_graphs_of_ones_own_are_trained_as_their_labels_ask(
    graphs: int, kinds: int, epochs: int, write_graphs: WriteGraphs
) -> None:
    config = config_of(write_graphs(graphs, kinds))
    assert config.epochs is None
    experiment = Experiment.prepare(config)
    assert experiment.config.epochs == epochs
    assert {experiment.config_of(fold).epochs for fold in experiment.folds} == {epochs}
    assert {task.config.epochs for task in experiment.tasks(start_run(experiment)[0])} == {epochs}


def test_an_asked_number_of_epochs_wins_and_a_run_keeps_its_own(
    write_graphs: WriteGraphs,
) -> None:
    folder = write_graphs(200, 4)
    assert Experiment.prepare(config_of(folder, "epochs=7")).config.epochs == 7
    run, record = start_run(Experiment.prepare(config_of(folder)))
    run.write_record(record)
    assert read_config(run).epochs == 300
    assert reopen_run(str(run.path), None)[2].config.epochs == 300
    assert reopen_run(str(run.path), 301)[2].config.epochs == read_config(run).epochs == 301


def test_layers_of_a_thousand_graphs_are_settled_before_anything_is_trained(
    write_graphs: WriteGraphs,
) -> None:
    folder = write_graphs(1000, 4)
    experiment = Experiment.prepare(config_of(folder))
    run, record = start_run(experiment)
    assert read_config(run).layers == 3
    assert record.name.endswith("-k3")
    assert {task.config.layers for task in experiment.tasks(run)} == {3}
    assert Experiment.prepare(config_of(folder, "layers=2")).config.layers == 2
    with pytest.raises(UserError, match="say layers=2"):
        config_of(folder, "state=[16,16]")


def test_degrees_are_one_kind_of_label(write_graphs: WriteGraphs) -> None:
    folder = write_graphs(10, 4)
    kinds = {
        features: kinds_of_labels(
            load_dataset_once(
                config_of(folder, f"dataset.features={features}").dataset, None, 0
            ).batch
        )
        for features in ("labels", "degree", "constant")
    }
    assert kinds == {"labels": 4, "degree": 1, "constant": 1}


def test_nodes_without_features_are_of_one_kind() -> None:
    config: TrainConfig = compose("train", ["dataset=karate", "epochs=null"])
    assert Experiment.prepare(config).config.epochs == 100


@pytest.mark.parametrize("option", ["mutag", "ptc", "imdb_b", "imdb_m", "proteins", "nci1"])
def test_named_datasets_are_trained_as_if_they_had_no_name(option: str) -> None:
    data = os.environ.get("LPGNN_DATA")
    if option != "mutag" and (not data or not (Path(data) / "NCI1.zip").is_file()):
        pytest.skip("the real datasets are not here: set LPGNN_DATA to a folder with NCI1.zip")
    words = [f"dataset={option}", "aggregator=diffusion"]
    config: TrainConfig = compose("train", words)
    dataset = load_dataset_once(config.dataset, None, 0)
    found = suited(config, dataset)
    entry = CATALOGUE[option]
    assert found.epochs == length_for(entry.graphs, entry.kinds, config.optim.batch_graphs)
    assert found.layers == layers_for(entry.graphs, entry.kinds)
    assert composed_settings(*words)["epochs"] == str(found.epochs)
    assert composed_settings(*words)["layers"] == str(found.layers)
    unnamed = compose(
        "train", ["dataset=tu", f"dataset.name={entry.tu_name}", "aggregator=diffusion"]
    )
    unnamed.dataset = config.dataset
    assert unnamed == config
