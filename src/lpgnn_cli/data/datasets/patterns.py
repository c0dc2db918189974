"""Graphs with a pattern hidden in each: subgraph matching and clique localisation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from lpgnn_cli.config.dataset import PatternConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.catalogue import CATALOGUE, Entry
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.data.features import NodeFeatures, NodeTables, choose_features, radial_basis
from lpgnn_cli.errors import UserError

Adjacency = npt.NDArray[np.bool_]

CATALOGUE["subgraph"] = Entry(300, 2100, None, 2, "integers 0-10 with noise", "generated")
CATALOGUE["clique"] = Entry(300, 2100, None, 2, "integers 0-8 with noise", "generated")


@dataset("pattern", PatternConfig)
def generate_pattern(config: PatternConfig, request: Request) -> Dataset:
    """`graphs` graphs for training, as many for validation and as many for test."""
    size, nodes = config.subgraph_nodes, config.nodes
    if size >= nodes:
        raise UserError(
            f"dataset.subgraph_nodes={size} leaves no node outside the pattern: it must be less "
            f"than dataset.nodes={nodes}."
        )
    if config.pattern == "clique" and size < 3:
        raise UserError(
            f"dataset.subgraph_nodes={size} is too small for a clique: every arc of a connected "
            "graph is a clique of 2, so the pattern needs at least 3 nodes."
        )
    # RandomState: its streams are frozen, those of newer generators may change with numpy.
    random = np.random.RandomState(request.seed)
    pattern, pattern_values = draw_pattern(config, random)
    total = 3 * config.graphs
    sources, targets = [], []
    inside = np.zeros((total, nodes), dtype=np.int64)
    values = random.randint(0, config.feature_max + 1, (total, nodes)).astype(np.float64)
    for graph in range(total):
        members = random.permutation(nodes)[:size]
        adjacency = _random_arcs(nodes, config.arc_probability, random)
        if config.pattern == "clique":
            adjacency = _insert_clique(adjacency, members, random)
        else:
            adjacency[np.ix_(members, members)] = pattern
            values[graph, members] = pattern_values
        source, target = np.nonzero(_connect(adjacency, random))
        sources.append(source + graph * nodes)
        targets.append(target + graph * nodes)
        inside[graph, members] = 1
    values += config.noise * random.standard_normal(values.shape)
    batch = GraphBatch.from_arcs(
        features=torch.zeros(total * nodes, 0),
        source=torch.from_numpy(np.concatenate(sources)),
        target=torch.from_numpy(np.concatenate(targets)),
        graph_ptr=torch.arange(total + 1) * nodes,
        targets=torch.from_numpy(inside.reshape(-1)),
        target_level="node",
        num_classes=2,
    )
    value = torch.from_numpy(values.reshape(-1).astype(np.float32))
    return Dataset.build(
        config.name,
        batch,
        _features(config, value, batch),
        positional=config.positional,
        parts={
            part: torch.arange(k * config.graphs, (k + 1) * config.graphs)
            for k, part in enumerate(("train", "val", "test"))
        },
        seeded=True,
    )


def draw_pattern(
    config: PatternConfig, random: np.random.RandomState
) -> tuple[Adjacency, npt.NDArray[np.int64]]:
    """The connected pattern of subgraph matching and the feature of each of its nodes."""
    size = config.subgraph_nodes
    arcs = _connect(_random_arcs(size, config.arc_probability, random), random)
    return arcs, random.randint(0, config.feature_max + 1, size)


def _features(config: PatternConfig, value: torch.Tensor, batch: GraphBatch) -> NodeFeatures:
    if config.features == "rbf":
        bumps = radial_basis(value, config.feature_max)
        return NodeFeatures(bumps, torch.zeros(bumps.shape[1], dtype=torch.bool))
    tables = NodeTables(
        labels=torch.zeros(value.numel(), 0, dtype=torch.int64),
        attributes=value[:, None],
        degrees=batch.arcs.in_degree,
    )
    choice = "attributes" if config.features == "auto" else config.features
    return choose_features(choice, config.name, tables)


def _random_arcs(nodes: int, probability: float, random: np.random.RandomState) -> Adjacency:
    upper = np.triu(random.random_sample((nodes, nodes)) < probability, k=1)
    return upper | upper.T


def _connect(adjacency: Adjacency, random: np.random.RandomState) -> Adjacency:
    """Join the components by random arcs, one for each component beyond the first."""
    import networkx as nx

    adjacency = adjacency.copy()
    components = [sorted(c) for c in nx.connected_components(nx.from_numpy_array(adjacency))]
    joined = components[0]
    for component in components[1:]:
        u, v = random.choice(joined), random.choice(component)
        adjacency[u, v] = adjacency[v, u] = True
        joined = joined + component
    return adjacency


def _insert_clique(
    adjacency: Adjacency, members: npt.NDArray[np.int64], random: np.random.RandomState
) -> Adjacency:
    """Make the members a clique and break every other clique as large by taking arcs away.

    What `_connect` adds afterwards are bridges, which are in no clique of three or more.
    """
    import networkx as nx

    graph = nx.from_numpy_array(adjacency)
    clique = set(members.tolist())
    graph.add_edges_from((u, v) for u in clique for v in clique if u < v)
    while True:
        large = (sorted(c) for c in nx.find_cliques(graph) if len(c) >= len(clique))
        rival = next((c for c in large if set(c) != clique), None)
        if rival is None:
            only: Adjacency = nx.to_numpy_array(graph, nodelist=range(len(adjacency))) > 0
            return only
        arcs = [(u, v) for u in rival for v in rival if u < v and not {u, v} <= clique]
        graph.remove_edge(*arcs[random.randint(len(arcs))])
