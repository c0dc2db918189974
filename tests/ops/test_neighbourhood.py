"""Neighbourhoods of several hops against networkx, and the median over them."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch.autograd import gradcheck

from lpgnn_cli.ops import Arcs, Neighbourhood


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_members_are_the_nodes_with_a_short_path(arcs: Arcs, hops: int) -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(arcs.num_nodes))
    graph.add_edges_from(zip(arcs.source.tolist(), arcs.target.tolist(), strict=True))
    near = Neighbourhood.of(arcs, hops)
    for v in range(arcs.num_nodes):
        expected = nx.single_source_shortest_path_length(graph.reverse(), v, cutoff=hops)
        assert near.member[near.ptr[v] : near.ptr[v + 1]].tolist() == sorted(expected)
    assert Neighbourhood.of(arcs, hops) is near


def test_median_is_the_lower_one_of_each_column(arcs: Arcs) -> None:
    values = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    near = Neighbourhood.of(arcs, 1)
    parts = near.member.split(near.ptr.diff().tolist())
    expected = torch.stack([values[part].median(dim=0).values for part in parts])
    assert torch.equal(near.median(values), expected)


def test_the_gradient_goes_to_the_median_element(arcs: Arcs) -> None:
    values = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(Neighbourhood.of(arcs, 2).median, values)


def test_a_graph_without_arcs_sees_only_itself() -> None:
    nowhere = torch.empty(0, dtype=torch.int64)
    near = Neighbourhood.of(Arcs.from_sorted(nowhere, nowhere, num_nodes=3), 2)
    assert near.member.tolist() == [0, 1, 2]
