"""What a run says of its data (`data.json`): counts, and a small graph as one hands it over."""

from __future__ import annotations

from typing import Any

import torch

from lpgnn_cli.data.dataset import Dataset

# An example is read by people: of larger graphs it has the first nodes, and of very wide features
# no more nodes than make this many numbers.
EXAMPLE_NODES = 30
EXAMPLE_NUMBERS = 2000


def describe_data(dataset: Dataset) -> dict[str, Any]:
    """Plain values, for a JSON file."""
    batch = dataset.batch
    return {
        "graphs": batch.num_graphs,
        "nodes": batch.num_nodes,
        "arcs": batch.num_arcs,
        "features": batch.features.shape[1] - dataset.positional,
        "arc_features": batch.arc_in.shape[1],
        "classes": batch.num_classes,
        "targets": f"{batch.task} of {batch.target_level}s",
        "example": example_graph(dataset),
    }


def example_graph(dataset: Dataset) -> dict[str, Any]:
    """The first graph, or its first nodes, as arrays; eigenvectors are not handed over."""
    batch = dataset.batch
    width = batch.features.shape[1] - dataset.positional
    nodes = min(int(batch.graph_ptr[1]), EXAMPLE_NODES, max(2, EXAMPLE_NUMBERS // max(1, width)))
    # Arcs are sorted by target, so those of the first graph come first.
    arcs = torch.arange(int(batch.arcs.ptr[nodes]))
    arcs = arcs[batch.arcs.source[arcs] < nodes]
    graph: dict[str, Any] = {
        "features": batch.features[:nodes, :width].tolist(),
        "source": batch.arcs.source[arcs].tolist(),
        "target": batch.arcs.target[arcs].tolist(),
    }
    if batch.arc_in.shape[1]:
        graph["arc_labels"] = batch.arc_in[arcs].tolist()
    return graph
