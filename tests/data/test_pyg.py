"""GraphBatch from PyTorch Geometric datasets."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from lpgnn_cli.data.pyg import from_pyg, masks_of
from lpgnn_cli.errors import UserError


@pytest.fixture(scope="module")
def pyg() -> Any:
    with warnings.catch_warnings():
        # The library itself calls what newer versions of torch call deprecated.
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "torch_geometric", reason="needs the extra [pyg]: pip install lpgnn-cli[pyg]"
        )


def test_a_dataset_of_graphs(pyg: Any) -> None:
    torch.manual_seed(0)
    dataset = pyg.datasets.FakeDataset(num_graphs=12, avg_num_nodes=8, edge_dim=3)
    batch = from_pyg(dataset)
    batch.validate()
    assert batch.num_graphs == 12
    assert batch.target_level == "graph"
    assert batch.num_classes == dataset.num_classes
    assert batch.targets.tolist() == [int(g.y) for g in dataset]
    for index in (0, 5, 11):
        single, graph = batch.subset(torch.tensor([index])), dataset[index]
        assert torch.equal(single.features, graph.x)
        order = torch.argsort(graph.edge_index[1], stable=True)
        assert torch.equal(single.arcs.source, graph.edge_index[0][order])
        assert torch.equal(single.arcs.target, graph.edge_index[1][order])
        assert torch.equal(single.arc_in, graph.edge_attr[order].reshape(len(order), -1))


def test_one_graph_with_targets_on_nodes(pyg: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        club = pyg.datasets.KarateClub()
    batch = from_pyg(club)
    batch.validate()
    assert (batch.num_graphs, batch.num_nodes, batch.num_arcs) == (1, 34, 156)
    assert batch.target_level == "node"
    assert batch.num_classes == 4
    assert torch.equal(batch.targets, club[0].y)
    assert batch.arc_in.shape == (156, 0)


def test_graphs_without_features_or_arcs(pyg: Any) -> None:
    lonely = pyg.data.Data(
        edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=2, y=torch.tensor([1])
    )
    batch = from_pyg([lonely, lonely])
    assert batch.features.shape == (4, 0)
    assert batch.targets.tolist() == [1, 1]


def test_what_cannot_be_taken(pyg: Any) -> None:
    arcs = torch.tensor([[0, 1], [1, 0]])

    def graph(y: torch.Tensor | None) -> Any:
        return pyg.data.Data(edge_index=arcs, num_nodes=2, y=y)

    for graphs, sentence in (
        ([], "at least one graph"),
        ([graph(None)], "a graph has no y"),
        ([graph(torch.tensor([float("nan")]))], "no finite number"),
        ([graph(torch.tensor([-1]))], "a negative class"),
        ([graph(torch.tensor([0, 1, 0]))], "one value, or one row of them, per graph or per node"),
        ([graph(torch.zeros(1, 2)), graph(torch.zeros(1, 3))], "numbers of columns in y"),
    ):
        with pytest.raises(ValueError, match=sentence):
            from_pyg(graphs)


def test_graphs_with_a_mistake_are_refused_in_a_sentence(pyg: Any) -> None:
    def graph(**other: Any) -> Any:
        good = {"edge_index": torch.tensor([[0, 1], [1, 0]]), "num_nodes": 2, "y": 1}
        return pyg.data.Data(**(good | other))

    for other, sentence in (
        ({"x": torch.zeros(3, 2)}, "x must have one row per node: a graph with 2 nodes"),
        ({"x": torch.zeros(2, 1)}, "different numbers of columns in x: 0 and 1"),
        ({"edge_attr": torch.zeros(3)}, "edge_attr must have one row per arc: a graph with 2 arcs"),
        ({"edge_index": torch.tensor([[0, 2], [1, 0]])}, "nodes 0 to 1 of a graph with 2 nodes"),
        ({"edge_index": torch.tensor([[0, -1], [1, 0]])}, "names nodes -1 to 1"),
        ({"edge_index": torch.tensor([[0, 1], [1, 0], [0, 0]])}, "shape .3, 2."),
        ({"edge_index": torch.tensor([[0.0, 1.0], [1.0, 0.0]])}, "two rows of whole numbers"),
        ({"y": "one"}, "y must be a tensor of numbers, not a str"),
        ({"num_nodes": 0, "edge_index": torch.zeros(2, 0).long()}, "every graph must have a node"),
    ):
        with pytest.raises(UserError, match=sentence):
            from_pyg([graph(), graph(**other)])
    with pytest.raises(UserError, match=r"not HeteroData\.$"):
        from_pyg(pyg.data.HeteroData(node={"x": torch.zeros(2, 1)}))
    with pytest.raises(UserError, match="has adj_t and no edge_index"):
        from_pyg(graph(edge_index=None, adj_t=torch.eye(2).to_sparse()))
    with pytest.raises(UserError, match="features must be finite"):
        from_pyg(graph(x=torch.full((2, 1), torch.nan)))
    masks = {f"{part}_mask": torch.tensor([True]) for part in ("train", "val", "test")}
    with pytest.raises(UserError, match="train_mask must have one row per node"):
        masks_of(graph(**masks))


def test_numbers_of_python_and_numpy_are_taken(pyg: Any) -> None:
    arcs = [[0, 1], [1, 0]]
    graphs = [
        pyg.data.Data(edge_index=arcs, num_nodes=2, x=[[1.0], [2.0]], y=1),
        pyg.data.Data(edge_index=np.array(arcs, np.int32), num_nodes=2, x=np.eye(2)[:1].T, y=0),
    ]
    batch = from_pyg(graphs)
    assert batch.features.tolist() == [[1.0], [2.0], [1.0], [0.0]]
    assert (batch.arcs.source.dtype, batch.targets.tolist()) == (torch.int64, [1, 0])


def test_targets_of_every_kind(pyg: Any) -> None:
    arcs = torch.tensor([[0, 1], [1, 0]])

    def batch(*targets: torch.Tensor) -> Any:
        graphs = [pyg.data.Data(edge_index=arcs, num_nodes=2, y=y) for y in targets]
        return from_pyg(graphs)

    numbers = batch(torch.tensor([0.5]), torch.tensor([2.0]))
    assert (numbers.task, numbers.target_level, numbers.num_classes) == ("numbers", "graph", 1)
    rows = batch(torch.tensor([[0.5, 1.0, 3.0]]), torch.tensor([[2.0, 0.0, 1.0]]))
    assert (rows.task, rows.target_level, rows.num_classes) == ("numbers", "graph", 3)
    labels = batch(torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    assert (labels.task, labels.target_level, labels.num_classes) == ("labels", "node", 3)
    assert batch(torch.tensor([0.5, 0.1])).target_level == "node"
