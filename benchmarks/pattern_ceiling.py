"""How well subgraph matching can be solved at all.

A judge that knows the pattern and how graphs are generated weighs every placement of the pattern
in a test graph by its probability, and calls a node part of the pattern where more than half of
the weight covers it. No model can be expected to do better: ambiguous graphs, in which other nodes
look like the pattern, set the limit.

    python benchmarks/pattern_ceiling.py [--seeds 5] [override ...]
"""

from __future__ import annotations

import argparse
import itertools
import statistics

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.dataset import PatternConfig
from lpgnn_cli.data.patterns import draw_pattern, generate_pattern

Floats = npt.NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="patterns to judge, one a seed")
    parser.add_argument("overrides", nargs="*", help="e.g. dataset.arc_probability=0.3")
    arguments = parser.parse_args()
    config = compose("train", ["dataset=subgraph", "~recipe", *arguments.overrides]).dataset
    assert isinstance(config, PatternConfig)

    table = Table("seed", "pattern features", "best possible accuracy")
    accuracies = []
    for seed in range(arguments.seeds):
        _, values = draw_pattern(config, np.random.RandomState(seed))
        accuracies.append(ceiling(config, seed))
        table.add_row(str(seed), " ".join(map(str, values)), f"{accuracies[-1]:.1%}")
    spread = statistics.pstdev(accuracies)
    table.add_row("all", "", f"{statistics.mean(accuracies):.1%} ± {spread:.1%}")
    Console().print(table)


def ceiling(config: PatternConfig, seed: int) -> float:
    """Accuracy of the judge on the nodes of the test graphs of this seed."""
    pattern, values = draw_pattern(config, np.random.RandomState(seed))
    dataset = generate_pattern(config, seed)
    nodes, batch = config.nodes, dataset.batch
    features = batch.features.numpy().reshape(-1, nodes).astype(np.float64)
    truth = batch.targets.numpy().reshape(-1, nodes) == 1
    adjacency = np.zeros((len(features), nodes, nodes), dtype=bool)
    source, target = batch.arcs.source.numpy(), batch.arcs.target.numpy()
    adjacency[source // nodes, source % nodes, target % nodes] = True
    right = [
        (membership(features[g], adjacency[g], pattern, values, config) > 0.5) == truth[g]
        for g in dataset.parts["test"].tolist()
    ]
    return float(np.mean(right))


def membership(
    features: Floats,
    adjacency: npt.NDArray[np.bool_],
    pattern: npt.NDArray[np.bool_],
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
