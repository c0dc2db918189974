"""How far the label of a node counts: what the scores of v owe to the label of u, by hops."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from lpgnn_cli.config.model import InferenceConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.propagation import Propagation

COLUMNS = ("hops", "influence", "pairs")
# What is looked at: so many graphs and nodes of a part, and so many nodes v of each graph.
GRAPHS, NODES, SAMPLES = 64, 4000, 4
# Influence counts as long as it is at least this share of that at the start.
COUNTS = 0.01


@dataclass(frozen=True)
class Influence:
    """The mean of |d scores_v / d label_u| over pairs of nodes, by the hops from u to v."""

    by_hops: list[float]
    pairs: list[int]

    @property
    def reach(self) -> int:
        """The last hop before it falls below its share of the start: one's own label, or that of a
        neighbour if that counts more, as it does where own labels do not enter."""
        least = COUNTS * max(self.by_hops[:2])
        beyond = (hops for hops, value in enumerate(self.by_hops) if value < least and hops > 0)
        return next(beyond, len(self.by_hops)) - 1

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(zip(range(len(self.pairs)), self.by_hops, self.pairs, strict=True))


def measure_influence(
    propagation: Propagation, part: Part, inference: InferenceConfig
) -> Influence | None:
    """Of the test phase from zero; None where nodes have no labels, or nothing tells of them."""
    part = _sample(part)
    if part.batch.features.shape[1] == 0:
        return None
    # Graphs are looked at through the scores that their nodes would have one by one.
    nodes = torch.zeros(part.batch.num_nodes, dtype=torch.int64, device=part.batch.targets.device)
    batch = replace(part.batch, targets=nodes, target_level="node")
    pull = propagation.pullback(batch, inference)
    if pull is None:
        return None
    random = torch.Generator().manual_seed(0)
    sums, counts = torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.int64)
    for _ in range(SAMPLES):
        chosen = _one_per_graph(part, random)
        # With random signs, the squared gradient is that of all classes together, on average.
        signs = torch.randint(0, 2, (len(chosen), part.batch.num_classes), generator=random)
        weights = batch.features.new_zeros(batch.num_nodes, part.batch.num_classes)
        weights[chosen] = 2 * signs.to(weights) - 1
        sizes = pull(weights).norm(dim=1).double().cpu()
        distance = hops_to(batch, chosen).cpu()
        there = distance >= 0
        length = max(len(sums), int(distance.max()) + 1)
        sums = _padded(sums, length).index_add(0, distance[there], sizes[there])
        counts = _padded(counts, length) + torch.bincount(distance[there], minlength=length)
    by_hops = (sums / counts.clamp(min=1)).tolist()
    if not bool(sums.isfinite().all()) or max(by_hops[:2]) == 0:
        return None
    return Influence(by_hops, counts.tolist())


def hops_to(batch: GraphBatch, nodes: Tensor) -> Tensor:
    """(N,) arcs on the shortest way to the nearest of these nodes; -1 where none leads there."""
    source, target = batch.arcs.source, batch.arcs.target
    distance = torch.full((batch.num_nodes,), -1, device=source.device)
    distance[nodes] = 0
    for hops in range(1, batch.num_nodes):
        found = source[(distance[target] == hops - 1) & (distance[source] < 0)]
        if not found.numel():
            break
        distance[found] = hops
    return distance


def _sample(part: Part) -> Part:
    """The first graphs of a part: enough to look at, and at least one."""
    ends = part.batch.graph_ptr[1:]
    count = min(GRAPHS, max(1, int((ends <= NODES).sum())))
    return part.subset(torch.arange(count, device=ends.device))


def _one_per_graph(part: Part, random: torch.Generator) -> Tensor:
    """A node of each graph that is scored, or any where graphs are."""
    batch = part.batch
    scored = torch.arange(batch.num_nodes) if part.scored is None else part.scored.cpu()
    shuffled = scored[torch.randperm(len(scored), generator=random)]
    graphs = batch.graph_of_node.cpu()[shuffled]
    chosen = torch.full((batch.num_graphs,), -1)
    chosen[graphs] = shuffled
    return chosen[chosen >= 0].to(batch.graph_ptr.device)


def _padded(values: Tensor, length: int) -> Tensor:
    return torch.cat([values, values.new_zeros(length - len(values))])
