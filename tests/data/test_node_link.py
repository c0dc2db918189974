"""Graphs as node-link data, as `networkx` writes it."""

from __future__ import annotations

from typing import Any

import pytest

from lpgnn_cli.data.node_link import from_node_link

PAIR: dict[str, Any] = {
    "nodes": [{"id": "a", "features": [1, 2]}, {"id": "b", "features": [3, 4]}],
    "edges": [{"source": "a", "target": "b", "features": [5]}],
}


@pytest.mark.parametrize(
    "alone",
    [
        {"nodes": PAIR["nodes"][:1], "edges": []},
        {"nodes": PAIR["nodes"][:1], "links": [], "directed": True},
        {"features": [[1, 2]], "source": [], "target": []},
        {"features": [[1, 2]], "source": [], "target": [], "arc_labels": []},
    ],
)
def test_a_graph_may_have_no_edges(alone: dict[str, Any]) -> None:
    """Alone, and beside one whose edges have features."""
    batch = from_node_link([alone])
    assert (batch.num_nodes, batch.num_arcs) == (1, 0)
    both = from_node_link([alone, PAIR])
    assert both.graph_ptr.tolist() == [0, 1, 3]
    assert both.features.tolist() == [[1, 2], [1, 2], [3, 4]]
    assert sorted(both.arcs.source.tolist()) == [1, 2]
    assert both.arc_in.tolist() == [[5], [5]]
