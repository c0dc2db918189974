"""How well subgraph matching can be solved, and how well it is learnt from its training graphs.

A judge that knows the pattern and how graphs are generated weighs every placement of the pattern
in a test graph by its probability, and calls a node part of the pattern where more than half of
the weight covers it. No model can be expected to do better: ambiguous graphs, in which other nodes
look like the pattern, set the limit.

A random forest knows nothing but the training graphs, as a network does. It is given the features
of each node, their sums over its neighbours and over the nodes two steps away, and its degree.

    python benchmarks/pattern_ceiling.py [--seeds 5] [override ...]
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import statistics

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.dataset import PatternConfig
from lpgnn_cli.data.dataset import Dataset, Request
from lpgnn_cli.data.datasets.patterns import draw_pattern, generate_pattern

Floats = npt.NDArray[np.float64]
Adjacency = npt.NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="patterns to judge, one per seed")
    parser.add_argument("overrides", nargs="*", help="e.g. dataset.arc_probability=0.3")
    arguments = parser.parse_args()
    config = compose("train", ["dataset=subgraph", "recipe=none", *arguments.overrides]).dataset
    assert isinstance(config, PatternConfig)

    table = Table("seed", "pattern features", "judge", "random forest")
    accuracies = []
    for seed in range(arguments.seeds):
        _, values = draw_pattern(config, np.random.RandomState(seed))
        accuracies.append((judge(config, seed), forest(config, seed)))
        row = (f"{accuracy:.1%}" for accuracy in accuracies[-1])
        table.add_row(str(seed), " ".join(map(str, values)), *row)
    columns = zip(*accuracies, strict=True)
    table.add_row(
        "all", "", *(f"{statistics.mean(c):.1%} ± {statistics.pstdev(c):.1%}" for c in columns)
    )
    Console().print(table)


def judge(config: PatternConfig, seed: int) -> float:
    """Accuracy of the judge on the nodes of the test graphs of this seed."""
    pattern, values = draw_pattern(config, np.random.RandomState(seed))
    dataset = generate_pattern(dataclasses.replace(config, features="auto"), Request(seed))
    adjacency, features, truth = by_graph(dataset, config.nodes)
    assert dataset.parts is not None
    right = [
        (membership(features[g, :, 0], adjacency[g], pattern, values, config) > 0.5) == truth[g]
        for g in dataset.parts["test"].tolist()
    ]
    return float(np.mean(right))


def forest(config: PatternConfig, seed: int) -> float:
    """Accuracy on the same nodes of a random forest fitted to the training graphs."""
    dataset = generate_pattern(dataclasses.replace(config, features="rbf"), Request(seed))
    adjacency, features, truth = by_graph(dataset, config.nodes)
    one_step = adjacency.astype(np.float64)
    two_steps = (one_step @ one_step > 0) & ~np.eye(config.nodes, dtype=bool)
    degree = one_step.sum(axis=2, keepdims=True)
    inputs = np.concatenate([features, one_step @ features, two_steps @ features, degree], axis=2)
    assert dataset.parts is not None
    train, test = dataset.parts["train"].numpy(), dataset.parts["test"].numpy()
    model = RandomForestClassifier(500, min_samples_leaf=2, random_state=0)
    model.fit(np.concatenate(inputs[train]), np.concatenate(truth[train]))
    return float(model.score(np.concatenate(inputs[test]), np.concatenate(truth[test])))


def by_graph(dataset: Dataset, nodes: int) -> tuple[Adjacency, Floats, npt.NDArray[np.bool_]]:
    """Adjacency, node features and membership of each graph; all graphs have as many nodes."""
    batch = dataset.batch
    graphs = batch.features.shape[0] // nodes
    adjacency = np.zeros((graphs, nodes, nodes), dtype=bool)
    source, target = batch.arcs.source.numpy(), batch.arcs.target.numpy()
    adjacency[source // nodes, source % nodes, target % nodes] = True
    features = batch.features.numpy().reshape(graphs, nodes, -1).astype(np.float64)
    return adjacency, features, batch.targets.numpy().reshape(graphs, nodes) == 1


def membership(
    features: Floats,
    adjacency: Adjacency,
    pattern: Adjacency,
    values: npt.NDArray[np.int64],
    config: PatternConfig,
) -> Floats:
    """The probability of each node to be in the pattern."""

    def likelihood(integers: npt.NDArray[np.int64]) -> Floats:
        return np.exp(-((features[:, None] - integers) ** 2) / (2 * config.noise**2))

    anything = likelihood(np.arange(config.feature_max + 1)).mean(axis=1, keepdims=True)
    odds = likelihood(values) / anything
    weights = np.zeros(config.nodes)
    total = 0.0
    for placement in itertools.permutations(range(config.nodes), config.subgraph_nodes):
        place = list(placement)
        if np.array_equal(adjacency[np.ix_(place, place)], pattern):
            weight = float(np.prod(odds[place, range(config.subgraph_nodes)]))
            weights[place] += weight
            total += weight
    return weights / total


if __name__ == "__main__":
    main()
