"""What an epoch of lpgnn is measured against, each as a function that trains one epoch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lpgnn_cli.config.compose import compose
from lpgnn_cli.data import load_dataset
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.propagation import build_propagation
from lpgnn_cli.training.epoch import train_epoch
from lpgnn_cli.training.evaluation import to_floats

STATE = HIDDEN = READOUT = 50
Epoch = Callable[[], object]


def load(dataset: str) -> GraphBatch:
    config = compose("train", settings(dataset))
    return load_dataset(config.dataset, config.data.root, seed=0).batch


def settings(dataset: str) -> list[str]:
    """The settings of lpgnn that the plain formulation implements."""
    return [
        f"dataset={dataset}",
        "recipe=none",
        "aggregator=sum",
        "g=squared",
        f"state=[{STATE}]",
        f"aggregator.hidden=[{HIDDEN}]",
        f"readout.hidden=[{READOUT}]",
        "tracking=none",
    ]


def lpgnn(dataset: str, batch: GraphBatch, *more: str) -> Epoch:
    config = compose("train", [*settings(dataset), *more])
    sets = {"train": batch}
    propagation = build_propagation(config, DataShape.of(batch), sets, like=batch.features)
    part = Part(batch)
    return lambda: to_floats(train_epoch(propagation, 1, part))


def lpgnn_without_kernel(dataset: str, batch: GraphBatch) -> Epoch:
    os.environ["LPGNN_ARC_KERNEL"] = "plain"
    return lpgnn(dataset, batch)


def one_shot(dataset: str, batch: GraphBatch) -> Epoch:
    return lpgnn(dataset, batch, "propagation.updates=one_shot")


def three_layers(dataset: str, batch: GraphBatch) -> Epoch:
    return lpgnn(dataset, batch, "layers=3")


def shipped(dataset: str, batch: GraphBatch, layers: int = 1) -> Epoch:
    """As `lpgnn train` trains: the recipe of the dataset, by batches of graphs."""
    config = compose("train", [f"dataset={dataset}", "tracking=none", f"layers={layers}"])
    sets = {"train": batch}
    propagation = build_propagation(config, DataShape.of(batch), sets, like=batch.features)
    # As a run does after every epoch: what it works out for all graphs is there from the second on.
    propagation.take_statistics(batch)
    part, order = Part(batch), torch.Generator().manual_seed(0)
    size = config.optim.batch_graphs
    return lambda: to_floats(train_epoch(propagation, 1, part, size, order))


def shipped_three_layers(dataset: str, batch: GraphBatch) -> Epoch:
    return shipped(dataset, batch, layers=3)


def fixed_point(dataset: str, batch: GraphBatch) -> Epoch:
    """GNN*: to convergence in every epoch, differentiated through all of the way."""
    return lpgnn(dataset, batch, "propagation=fixed_point", "propagation.gain=0.9")


def implicit(dataset: str, batch: GraphBatch) -> Epoch:
    """As deep equilibrium models do: to convergence, the gradient by an adjoint solve."""
    way = ("propagation=fixed_point", "propagation.backward=implicit", "propagation.gain=0.9")
    return lpgnn(dataset, batch, *way)


def plain(dataset: str, batch: GraphBatch) -> Epoch:
    from plain import LearningRates, PlainLagrangian

    lr = compose("train", settings(dataset)).lr
    rates = LearningRates(lr.theta, lr.state, lr.state)
    return PlainLagrangian(batch, state=STATE, hidden=HIDDEN, readout=READOUT, lr=rates).train_epoch


class Gin(nn.Module):
    """PyG's layers, as the paper of GIN has them: five, read at every layer."""

    def __init__(self, features: int, classes: int, layers: int = 5) -> None:
        super().__init__()
        from torch_geometric.nn import GINConv

        sizes = [features] + [HIDDEN] * layers
        self.convolutions = nn.ModuleList(
            GINConv(
                nn.Sequential(
                    nn.Linear(size, HIDDEN),
                    nn.BatchNorm1d(HIDDEN),
                    nn.ReLU(),
                    nn.Linear(HIDDEN, HIDDEN),
                ),
                train_eps=True,
            )
            for size in sizes[:-1]
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in range(layers))
        self.readouts = nn.ModuleList(nn.Linear(size, classes) for size in sizes)

    def forward(self, x: Tensor, arcs: Tensor, graph: Tensor, graphs: int) -> Tensor:
        from torch_geometric.nn import global_add_pool

        scores: Tensor = self.readouts[0](global_add_pool(x, graph, size=graphs))
        for convolution, norm, readout in zip(
            self.convolutions, self.norms, list(self.readouts)[1:], strict=True
        ):
            x = norm(convolution(x, arcs)).relu()
            scores = scores + readout(global_add_pool(x, graph, size=graphs))
        return scores


def gin(dataset: str, batch: GraphBatch, graphs_per_step: int | None = None) -> Epoch:
    network = Gin(batch.features.shape[1], batch.num_classes)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)

    def epoch() -> None:
        for piece in pieces(batch, graphs_per_step):
            arcs = torch.stack([piece.arcs.source, piece.arcs.target])
            scores = network(piece.features, arcs, piece.graph_of_node, piece.num_graphs)
            loss = nn.functional.cross_entropy(scores, piece.targets)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return epoch


def gin_in_batches(dataset: str, batch: GraphBatch) -> Epoch:
    return gin(dataset, batch, 32)


def pieces(batch: GraphBatch, size: int | None) -> Iterator[GraphBatch]:
    if size is None:
        yield batch
        return
    for graphs in torch.randperm(batch.num_graphs).split(size):
        yield batch.subset(graphs)


def floor(dataset: str, batch: GraphBatch) -> Epoch:
    """Only what no formulation can do without: the matrix products on nodes, the two passes over
    arcs, and one pass of Adam over the states."""
    from lpgnn_cli.ops import sum_activated

    n = batch.num_nodes
    x = torch.zeros(n, STATE, requires_grad=True)
    x.grad = torch.randn(n, STATE)
    p, q = (torch.randn(n, HIDDEN, requires_grad=True) for _ in range(2))
    gradient, weight = torch.randn(n, HIDDEN), torch.randn(STATE, HIDDEN)
    adam = torch.optim.Adam([x], fused=True)

    def epoch() -> Any:
        with torch.no_grad():
            # To both ends of the arcs and from the sums; their weights and their inputs back.
            for _ in range(3):
                torch.mm(gradient, weight)
                torch.mm(gradient.t(), gradient)
                torch.mm(gradient, weight.t())
        torch.autograd.grad(sum_activated(p, q, batch.arcs, "tanh"), [p, q], gradient)
        adam.step()

    return epoch


LPGNN = "lpgnn"
VARIANTS: dict[str, Callable[[str, GraphBatch], Epoch]] = {
    LPGNN: lpgnn,
    "floor": floor,
    "lpgnn, plain operations": lpgnn_without_kernel,
    "lpgnn, one-shot": one_shot,
    "lpgnn, K = 3": three_layers,
    "lpgnn, shipped recipe": shipped,
    "lpgnn, shipped recipe, K = 3": shipped_three_layers,
    "plain formulation": plain,
    "PyG GIN, 5 layers": gin,
    "PyG GIN, batches of 32": gin_in_batches,
    "GNN*": fixed_point,
    "DEQ-style implicit": implicit,
}
# What their own users run has the C library's allocator settings, not lpgnn's.
UNTUNED = ("plain formulation", "PyG GIN, 5 layers", "PyG GIN, batches of 32")
