"""Laplacian eigenvectors as positional encodings, and their random signs in training."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch

# An eigenvalue below this belongs to a trivial eigenvector: one that only tells components apart.
ZERO_EIGENVALUE = 1e-6


def laplacian_eigenvectors(batch: GraphBatch, count: int) -> Tensor:
    """(N, count) the eigenvectors of the smallest non-trivial eigenvalues, graph by graph.

    Of the symmetric normalised Laplacian of the undirected graph; a graph that has fewer of them
    is padded with zeros.
    """
    encoding_NK = np.zeros((batch.num_nodes, count), dtype=np.float32)
    bounds = batch.graph_ptr.cpu().numpy()
    arc_bounds = batch.arcs.ptr.cpu().numpy()[bounds]
    source, target = batch.arcs.source.cpu().numpy(), batch.arcs.target.cpu().numpy()
    for graph in range(batch.num_graphs):
        first, last = bounds[graph], bounds[graph + 1]
        arcs = slice(arc_bounds[graph], arc_bounds[graph + 1])
        adjacency = np.zeros((last - first, last - first))
        adjacency[source[arcs] - first, target[arcs] - first] = 1.0
        adjacency = np.maximum(adjacency, adjacency.T)
        degree = adjacency.sum(0)
        scale = 1.0 / np.sqrt(np.maximum(degree, 1.0))
        laplacian = np.diag(np.sign(degree)) - scale[:, None] * adjacency * scale[None, :]
        values, vectors = np.linalg.eigh(laplacian)
        chosen = vectors[:, values > ZERO_EIGENVALUE][:, :count]
        encoding_NK[first:last, : chosen.shape[1]] = chosen
    return torch.from_numpy(encoding_NK)


def random_signs(batch: GraphBatch, positional: int, generator: torch.Generator) -> Tensor:
    """(G, K) a random sign per graph and eigenvector."""
    shape = (batch.num_graphs, positional)
    signs_GK = torch.randint(0, 2, shape, generator=generator, device=generator.device)
    return (2 * signs_GK - 1).to(batch.features)


def with_signs(batch: GraphBatch, signs_GK: Tensor) -> GraphBatch:
    """The batch with its last columns, the eigenvectors, multiplied by these signs."""
    features = batch.features.clone()
    features[:, features.shape[1] - signs_GK.shape[1] :] *= signs_GK[batch.graph_of_node]
    return batch.with_features(features)
