"""The eleven datasets: published counts, and what makes the generated ones what they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.data import Dataset, GraphBatch, load_dataset
from lpgnn_cli.data.archive import read_files
from lpgnn_cli.data.catalogue import CATALOGUE
from lpgnn_cli.data.storage import read_embedded
from lpgnn_cli.data.tu import read_tables
from lpgnn_cli.errors import UserError

Configs = Callable[..., DatasetConfig]

# graphs, nodes, arcs, classes, features, continuous features, arc labels
REAL = {
    "ptc": (344, 8792, 17862, 2, 19, 0, 0),
    "nci1": (4110, 122747, 265506, 2, 37, 0, 0),
    "proteins": (1113, 43471, 162088, 2, 3, 0, 0),
    "imdb_b": (1000, 19773, 193062, 2, 65, 0, 0),
    "imdb_m": (1500, 19502, 197806, 3, 59, 0, 0),
    "enzymes": (600, 19580, 74564, 6, 21, 18, 0),
}
CLASS_SIZES = {
    "ptc": [192, 152],
    "nci1": [2053, 2057],
    "proteins": [663, 450],
    "imdb_b": [500, 500],
    "imdb_m": [500] * 3,
    "enzymes": [100] * 6,
}
HERE = {
    "karate": (1, 34, 156, 4, 0, 0, 0),
    "subgraph": (300, 2100, None, 2, 1, 1, 0),
    "clique": (300, 2100, None, 2, 1, 1, 0),
    "csl": (150, 6150, 24600, 10, 20, 0, 0),
    "mutag": (188, 3371, 7442, 2, 7, 0, 4),
    "chains": (40, 4000, 7920, 2, 100, 0, 0),
    "ring": (700, 21000, 42000, 5, 5, 0, 0),
    "tree": (10000, 310000, 300000, 16, 32, 0, 0),
}
NODES = {
    "cora": (1, 2708, 10556, 7, 1433, 0, 0),
    "citeseer": (1, 3327, 9104, 6, 3703, 0, 0),
    "minesweeper": (1, 10000, 78804, 2, 7, 0, 0),
    "chameleon": (1, 890, 17708, 5, 2325, 0, 0),
}


def counts(dataset: Dataset) -> tuple[int, ...]:
    batch = dataset.batch
    return (
        batch.num_graphs,
        batch.num_nodes,
        batch.num_arcs,
        batch.num_classes,
        batch.features.shape[1],
        int(dataset.continuous.sum()),
        batch.arc_in.shape[1],
    )


def as_networkx(batch: GraphBatch, graph: int) -> nx.Graph:
    """The nodes keep their numbers in the union."""
    single: nx.Graph = nx.Graph()
    single.add_nodes_from(range(int(batch.graph_ptr[graph]), int(batch.graph_ptr[graph + 1])))
    inside = slice(*batch.arcs.ptr[batch.graph_ptr[graph : graph + 2]].tolist())
    single.add_edges_from(
        zip(batch.arcs.source[inside].tolist(), batch.arcs.target[inside].tolist(), strict=True)
    )
    return single


@pytest.mark.parametrize("name", HERE)
def test_counts_without_network_or_data_folder(
    dataset_config: Configs, no_data_folder: None, name: str
) -> None:
    dataset = load_dataset(dataset_config(name), None, 0)
    dataset.batch.validate()
    for found, expected in zip(counts(dataset), HERE[name], strict=True):
        assert expected in (found, None)
    assert set(dataset.batch.targets.tolist()) == set(range(dataset.batch.num_classes))


@pytest.mark.parametrize("name", REAL)
def test_counts_of_the_real_ones(dataset_config: Configs, shared_data: Path, name: str) -> None:
    dataset = load_dataset(dataset_config(name), str(shared_data), 0)
    dataset.batch.validate()
    assert counts(dataset) == REAL[name]
    assert torch.bincount(dataset.batch.targets).tolist() == CLASS_SIZES[name]
    lonely = int((dataset.batch.arcs.in_degree == 0).sum())
    assert lonely == {"nci1": 428, "proteins": 5, "enzymes": 106}.get(name, 0)


@pytest.mark.parametrize("name", NODES)
def test_counts_of_the_files_of_nodes(
    dataset_config: Configs, shared_data: Path, name: str
) -> None:
    if not (shared_data.parent / "node").is_dir():
        pytest.skip("the files of nodes are not beside LPGNN_DATA")
    assert counts(load_dataset(dataset_config(name), str(shared_data), 0)) == NODES[name]


def test_the_catalogue_has_the_published_numbers() -> None:
    published = {**REAL, **HERE, **NODES}
    assert set(CATALOGUE) == set(published)
    for name, expected in published.items():
        entry = CATALOGUE[name]
        if name != "ptc":
            assert (entry.graphs, entry.nodes, entry.arcs, entry.classes) == expected[:4]


def test_mutag_ships_with_the_package(dataset_config: Configs, no_data_folder: None) -> None:
    batch = load_dataset(dataset_config("mutag"), None, 0).batch
    assert torch.bincount(batch.targets).tolist() == [63, 125]
    assert batch.features.sum(0).tolist() == [2395, 345, 593, 12, 1, 23, 2]
    # A bond has one type, whichever way it is read.
    assert torch.equal(batch.arc_in, batch.arc_out)
    assert batch.arc_in.sum(0).tolist() == [4708, 2008, 724, 2]


def test_mutag_is_that_of_the_collection(shared_data: Path) -> None:
    published = read_tables(read_files(shared_data / "MUTAG.zip", "MUTAG")).to_arrays()
    for name, table in read_embedded("MUTAG").to_arrays().items():
        np.testing.assert_array_equal(table, published[name])


def test_karate_classes_have_the_greatest_modularity(dataset_config: Configs) -> None:
    dataset = load_dataset(dataset_config("karate"), None, 0)
    club = as_networkx(dataset.batch, 0)
    assert set(map(frozenset, club.edges)) == set(map(frozenset, nx.karate_club_graph().edges))
    classes = [set((dataset.batch.targets == c).nonzero().flatten().tolist()) for c in range(4)]
    best = nx.community.modularity(club, classes)
    assert best == pytest.approx(0.4198, abs=5e-5)
    found = [nx.community.louvain_communities(club, seed=seed) for seed in range(20)]
    assert max(nx.community.modularity(club, c) for c in found) <= best + 1e-9
    assert not dataset.seeded
    assert dataset.parts is None


@pytest.mark.parametrize(("features", "width"), [("auto", 0), ("constant", 1), ("degree", 11)])
def test_karate_features(dataset_config: Configs, features: str, width: int) -> None:
    config = dataset_config("karate", features=features)
    assert load_dataset(config, None, 0).batch.features.shape == (34, width)


@pytest.mark.parametrize("name", ["karate", "csl", "clique"])
def test_features_that_a_dataset_does_not_have(dataset_config: Configs, name: str) -> None:
    with pytest.raises(UserError, match=f"{name} has no node labels"):
        load_dataset(dataset_config(name, features="labels"), None, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"graphs": 30},
        {"nodes": 30, "subgraph_nodes": 15, "graphs": 4},
        {"arc_probability": 0.8, "graphs": 10},
        {"arc_probability": 0.0, "graphs": 10},
    ],
)
@pytest.mark.parametrize("name", ["subgraph", "clique"])
def test_patterns(dataset_config: Configs, name: str, changes: dict[str, Any]) -> None:
    config: Any = dataset_config(name, **changes)
    dataset = load_dataset(config, None, 3)
    batch = dataset.batch
    assert batch.target_level == "node"
    assert batch.num_graphs == 3 * config.graphs
    assert batch.graph_ptr.diff().tolist() == [config.nodes] * batch.num_graphs
    assert dataset.seeded
    assert dataset.parts is not None
    assert torch.cat([dataset.parts[p] for p in ("train", "val", "test")]).tolist() == list(
        range(batch.num_graphs)
    )
    patterns = []
    for graph in range(batch.num_graphs):
        drawn = as_networkx(batch, graph)
        assert nx.is_connected(drawn)
        assert not nx.number_of_selfloops(drawn)
        members = {v for v in drawn if batch.targets[v] == 1}
        assert len(members) == config.subgraph_nodes
        patterns.append(drawn.subgraph(members))
        if name == "clique":
            large = [set(c) for c in nx.find_cliques(drawn) if len(c) >= config.subgraph_nodes]
            assert large == [members], "the inserted clique is the only one of its size"
    if name == "subgraph":
        assert all(nx.is_isomorphic(patterns[0], p) for p in patterns[1:])
        # The same features, up to noise, in the same places of the pattern.
        values = [sorted(batch.features[list(p)].flatten().tolist()) for p in patterns]
        spread = torch.tensor(values).std(0)
        assert spread.max() < 2 * config.noise
    integers = batch.features.round()
    assert integers.min() >= -1
    assert integers.max() <= config.feature_max + 1
    assert (batch.features - integers).std() > 0.1


def test_patterns_are_those_of_the_seed(dataset_config: Configs) -> None:
    for name in ("subgraph", "clique"):
        config = dataset_config(name, graphs=5)
        assert (
            load_dataset(config, None, 1).fingerprint()
            == load_dataset(config, None, 1).fingerprint()
            != load_dataset(config, None, 2).fingerprint()
        )


def test_known_fingerprints(dataset_config: Configs) -> None:
    """Everybody's runs are on the same data: a change here must be meant."""
    found = {name: load_dataset(dataset_config(name), None, 0).fingerprint()[:16] for name in HERE}
    assert found == KNOWN


KNOWN = {
    "karate": "aa783dc5c8e2c034",
    "subgraph": "ef8f1088e996b453",
    "clique": "d3525d33684a1b96",
    "csl": "a24107debbd8bcb4",
    "mutag": "7a3bac3d0ff11c40",
    "chains": "5522ab49a91bde8d",
    "ring": "6ceb6d482800d14f",
    "tree": "378dade9d472ee6f",
}


def test_patterns_without_noise_are_integers(dataset_config: Configs) -> None:
    batch = load_dataset(dataset_config("subgraph", noise=0.0), None, 0).batch
    assert set(batch.features.flatten().tolist()) == set(map(float, range(11)))


def test_radial_basis_features(dataset_config: Configs) -> None:
    plain = load_dataset(dataset_config("subgraph", noise=0.0), None, 0)
    bumps = load_dataset(dataset_config("subgraph", noise=0.0, features="rbf"), None, 0)
    assert bumps.batch.features.shape == (2100, 11)
    assert not bumps.continuous.any()
    assert torch.equal(bumps.batch.features.argmax(1), plain.batch.features.flatten().long())
    assert bumps.batch.features.max() == 1.0


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("subgraph", {"subgraph_nodes": 7}, "leaves no node outside the pattern"),
        ("clique", {"subgraph_nodes": 2}, "too small for"),
        ("csl", {"skips": [2, 21]}, "dataset.skips=21 is too long for a cycle of 41 nodes"),
        ("csl", {"skips": [2, 2]}, "two or more different lengths"),
        ("csl", {"skips": [2]}, "two or more different lengths"),
    ],
)
def test_settings_that_cannot_be_generated(
    dataset_config: Configs, name: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        load_dataset(dataset_config(name, **changes), None, 0)


def test_csl(dataset_config: Configs) -> None:
    dataset = load_dataset(dataset_config("csl"), None, 0)
    batch = dataset.batch
    assert batch.targets.tolist() == [c for c in range(10) for _ in range(15)]
    assert set(batch.arcs.in_degree.tolist()) == {4}
    assert dataset.positional == 20
    skips = [2, 3, 4, 5, 6, 9, 11, 12, 13, 16]
    for graph in (0, 14, 15, 149):
        expected = nx.circulant_graph(41, [1, skips[graph // 15]])
        assert nx.faster_could_be_isomorphic(as_networkx(batch, graph), expected)
        assert nx.is_isomorphic(as_networkx(batch, graph), expected)
    first, second = as_networkx(batch, 0), as_networkx(batch, 1)
    assert set(first.edges) != {(u - 41, v - 41) for u, v in second.edges}, "copies are relabelled"
    other = load_dataset(dataset_config("csl"), None, 1)
    assert other.fingerprint() == dataset.fingerprint(), "seeds vary the weights, not the data"


def test_features_of_the_data_folder_variable(shared_data: Path, dataset_config: Configs) -> None:
    """No data.root: LPGNN_DATA is the folder."""
    assert os.environ["LPGNN_DATA"] == str(shared_data)
    assert load_dataset(dataset_config("ptc"), None, 0).batch.num_graphs == 344
