"""Laplacian eigenvectors and their signs; standardised features."""

from __future__ import annotations

import dataclasses
import json

import networkx as nx
import pytest
import torch

from lpgnn_cli.data import Dataset, FeatureScaler, GraphBatch, random_signs, with_signs
from lpgnn_cli.data.features import NodeFeatures
from lpgnn_cli.data.positional import laplacian_eigenvectors


def union_of(*graphs: nx.Graph, features: torch.Tensor | None = None) -> GraphBatch:
    sizes = [g.number_of_nodes() for g in graphs]
    whole = nx.disjoint_union_all(graphs)
    arcs = torch.tensor(list(whole.to_directed().edges), dtype=torch.int64).reshape(-1, 2)
    return GraphBatch.from_arcs(
        features=torch.zeros(sum(sizes), 0) if features is None else features,
        source=arcs[:, 0],
        target=arcs[:, 1],
        graph_ptr=torch.tensor([0, *sizes]).cumsum(0),
        targets=torch.zeros(len(graphs), dtype=torch.int64),
        target_level="graph",
        num_classes=1,
    )


def test_they_are_the_smallest_non_trivial_eigenvectors() -> None:
    graphs = [nx.path_graph(6), nx.star_graph(4), nx.lollipop_graph(4, 3)]
    batch = union_of(*graphs)
    encoding = laplacian_eigenvectors(batch, 2).double()
    for index, graph in enumerate(graphs):
        part = encoding[batch.graph_ptr[index] : batch.graph_ptr[index + 1]]
        laplacian = torch.from_numpy(nx.normalized_laplacian_matrix(graph).toarray())
        values = torch.linalg.eigvalsh(laplacian)
        for column in range(2):
            vector = part[:, column]
            torch.testing.assert_close(vector.norm(), torch.ones(()).double(), atol=1e-6, rtol=0)
            expected = values[column + 1] * vector
            torch.testing.assert_close(laplacian @ vector, expected, atol=1e-6, rtol=0)
        assert abs(float(part[:, 0] @ part[:, 1])) < 1e-6


def test_small_and_disconnected_graphs_are_padded() -> None:
    lonely = nx.empty_graph(1)
    two_parts = nx.disjoint_union(nx.path_graph(2), nx.path_graph(2))
    batch = union_of(lonely, nx.path_graph(2), two_parts, nx.empty_graph(3))
    encoding = laplacian_eigenvectors(batch, 3)
    assert encoding[0].tolist() == [0.0] * 3
    assert encoding[1:3].abs().sum(0).tolist() == pytest.approx([2**0.5, 0.0, 0.0])
    # Four nodes, two components: two eigenvectors tell more than the component.
    assert encoding[3:7].norm(dim=0).tolist() == pytest.approx([1.0, 1.0, 0.0])
    assert encoding[7:].abs().max() == 0.0


def test_one_way_arcs_count_in_both_directions() -> None:
    both = union_of(nx.path_graph(4))
    one_way = GraphBatch.from_arcs(
        features=torch.zeros(4, 0),
        source=torch.tensor([0, 1, 2]),
        target=torch.tensor([1, 2, 3]),
        graph_ptr=both.graph_ptr,
        targets=both.targets,
        target_level="graph",
        num_classes=1,
    )
    torch.testing.assert_close(
        laplacian_eigenvectors(one_way, 3).abs(), laplacian_eigenvectors(both, 3).abs()
    )


def test_signs_flip_by_graph_and_column_and_nowhere_else() -> None:
    batch = union_of(nx.path_graph(3), nx.path_graph(2), features=torch.rand(5, 4) + 0.5)
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(60):
        flipped = with_signs(batch, random_signs(batch, 2, generator))
        ratio = flipped.features / batch.features
        assert torch.equal(ratio[:, :2], torch.ones(5, 2))
        assert torch.equal(ratio[:3], ratio[:1].expand(3, 4))
        assert torch.equal(ratio[3:], ratio[3:4].expand(2, 4))
        seen.add(tuple(ratio[[0, 3], 2:].flatten().tolist()))
    assert len(seen) == 16, "all signs of two graphs and two columns"
    again = [random_signs(batch, 2, torch.Generator().manual_seed(5)) for _ in range(2)]
    assert torch.equal(*again)


def dataset_of(features: torch.Tensor, continuous: list[bool], positional: int = 0) -> Dataset:
    batch = union_of(nx.path_graph(len(features)))
    values = NodeFeatures(features, torch.tensor(continuous, dtype=torch.bool))
    return Dataset.build("sample", batch, values, positional=positional)


def test_the_scaler_knows_the_training_nodes_only() -> None:
    features = torch.tensor([[1.0, 5.0, 0.0], [3.0, 5.0, 1.0], [1000.0, -7.0, 1.0]])
    dataset = dataset_of(features, [True, True, False])
    scaler = FeatureScaler.fit(dataset, torch.tensor([0, 1]))
    scaled = scaler.apply(dataset.batch).features
    assert scaled[:, 0].tolist() == [-1.0, 1.0, 998.0]
    assert scaled[:, 1].tolist() == [0.0, 0.0, -12.0], "a constant column is only centred"
    assert scaled[:, 2].tolist() == [0.0, 1.0, 1.0], "a discrete column stays"
    assert torch.equal(dataset.batch.features, features), "the dataset itself is left alone"


def test_the_scaler_goes_through_json() -> None:
    dataset = dataset_of(torch.randn(6, 3), [True, False, True], positional=2)
    scaler = FeatureScaler.fit(dataset, torch.arange(4))
    again = FeatureScaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    assert torch.equal(again.apply(dataset.batch).features, scaler.apply(dataset.batch).features)
    assert scaler.mean.tolist()[-2:] == [0.0, 0.0], "eigenvectors keep their scale"


def test_the_scaler_without_features() -> None:
    dataset = dataset_of(torch.zeros(3, 0), [])
    scaler = FeatureScaler.fit(dataset, torch.arange(3))
    assert scaler.apply(dataset.batch).features.shape == (3, 0)


def test_the_fingerprint_does_not_depend_on_the_linear_algebra_library() -> None:
    dataset = dataset_of(torch.ones(4, 1), [False], positional=2)
    signs = random_signs(dataset.batch, 2, torch.Generator().manual_seed(3))
    flipped = with_signs(dataset.batch, signs)
    other = dataclasses.replace(dataset, batch=flipped)
    assert other.batch.fingerprint() != dataset.batch.fingerprint()
    assert other.fingerprint() == dataset.fingerprint()
    assert dataset_of(torch.ones(4, 1), [False], positional=1).fingerprint() != other.fingerprint()
