"""Graphs of one shape in which one node must answer for a distant one: rings and trees."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from lpgnn_cli.config.dataset import RingConfig, TransferConfig, TreeConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.catalogue import CATALOGUE, Entry
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.errors import UserError

# 2 GiB of features.
MAX_NUMBERS = 1 << 29

Integers = npt.NDArray[np.int64]

CATALOGUE["ring"] = Entry(700, 21000, 42000, 5, "5 columns", "generated")
CATALOGUE["tree"] = Entry(10000, 310000, 300000, 16, "32 columns", "generated")


@dataset("ring", RingConfig)
def generate_rings(config: RingConfig, request: Request) -> Dataset:
    """Ring transfer (Bodnar et al. 2021): node 0 must tell the class on the node opposite of it.

    That node has its class as a one-hot, node 0 nothing and all others the same constant.
    """
    size, count = config.nodes, config.graphs + 2 * config.held_out
    random = np.random.RandomState(request.seed)
    # As many of each class as can be, in each part.
    classes = np.concatenate([random.permutation(n) % config.classes for n in _sizes(config)])
    features = _room(config, count, size, config.classes)
    features += config.between
    features[:, [0, size // 2]] = 0
    features[np.arange(count), size // 2, classes] = 1
    node = np.arange(size)
    # Clockwise; two nodes have one edge between them, not two.
    source, target = (node, (node + 1) % size) if size > 2 else (node[:1], node[1:])
    return _one_answer(config, features, source, target, classes, config.classes, _sizes(config))


@dataset("tree", TreeConfig)
def generate_trees(config: TreeConfig, request: Request) -> Dataset:
    """Neighbours match (Alon and Yahav 2021): which value has the leaf with the key of the root?

    Leaves have keys, always the same ones from left to right, and a permutation of values; the root
    has the key that it asks for, and the nodes in between have nothing. No tree is drawn twice.
    """
    leaves, sizes = 2**config.depth, _sizes(config)
    distinct = leaves * math.factorial(leaves)
    if sum(sizes) > distinct:
        held_out = max(1, distinct * config.held_out // sum(sizes))
        sizes = [distinct - 2 * held_out, held_out, held_out]
    keys, values = _draw_trees(leaves, sum(sizes), np.random.RandomState(request.seed))
    count, nodes = len(keys), 2 * leaves - 1
    graph, leaf = np.arange(count), np.arange(leaves)
    features = _room(config, count, nodes, 2 * leaves)
    features[graph, 0, keys] = 1
    features[:, leaf + leaves - 1, leaf] = 1
    features[graph[:, None], leaf + leaves - 1, leaves + values] = 1
    child = np.arange(1, nodes)
    return _one_answer(
        config, features, child, (child - 1) // 2, values[graph, keys], leaves, sizes
    )


def _sizes(config: TransferConfig) -> list[int]:
    """Graphs of the training, validation and test parts."""
    return [config.graphs, config.held_out, config.held_out]


def _room(config: TransferConfig, count: int, nodes: int, columns: int) -> npt.NDArray[np.float32]:
    """(graphs, nodes, columns) features, all zero."""
    numbers = count * nodes * columns
    if numbers > MAX_NUMBERS:
        raise UserError(
            f"{config.name} would have {numbers:,} features, more than {MAX_NUMBERS:,}: set a "
            "smaller dataset.graphs."
        )
    return np.zeros((count, nodes, columns), dtype=np.float32)


def _draw_trees(
    leaves: int, count: int, random: np.random.RandomState
) -> tuple[Integers, Integers]:
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < count:
        drawn[(random.randint(leaves), *random.permutation(leaves).tolist())] = None
    table = np.array(list(drawn), dtype=np.int64)
    return table[:, 0], table[:, 1:]


def _one_answer(
    config: TransferConfig,
    features: npt.NDArray[np.float32],
    source: Integers,
    target: Integers,
    answers: Integers,
    num_classes: int,
    sizes: list[int],
) -> Dataset:
    """Copies of one graph, whose node 0 is scored; (graphs, nodes, columns) features."""
    count, nodes, columns = features.shape
    if not config.directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    first = np.arange(count) * nodes
    targets = np.zeros((count, nodes), dtype=np.int64)
    targets[:, 0] = answers
    batch = GraphBatch.from_arcs(
        features=torch.from_numpy(features.reshape(-1, columns)),
        source=torch.from_numpy((first[:, None] + source).reshape(-1)),
        target=torch.from_numpy((first[:, None] + target).reshape(-1)),
        graph_ptr=torch.arange(count + 1) * nodes,
        targets=torch.from_numpy(targets.reshape(-1)),
        target_level="node",
        num_classes=num_classes,
    )
    train, val, test = torch.arange(count).split(sizes)
    parts = {"train": train, "val": val, "test": test}
    scored = torch.from_numpy(first)
    return Dataset.from_batch(config, batch, parts=parts, scored=scored, seeded=True)
