"""Whether neighbours are alike, by the labels of training alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lpgnn_cli.data.alike import Alikeness
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.scaling import WORDS, FeatureScaler, are_words

NODES = 400


def random_graph(same: float, classes: int = 4, edges: int = 2000) -> GraphBatch:
    """Edges whose ends have the same class with this probability."""
    random = np.random.RandomState(1)
    targets = np.arange(NODES) % classes
    source = random.randint(NODES, size=edges)
    target = random.randint(NODES // classes, size=edges) * classes + targets[source]
    other = random.rand(edges) >= same
    target[other] = (target[other] + random.randint(1, classes, size=other.sum())) % NODES
    ends = np.concatenate([[source, target], [target, source]], axis=1)
    return GraphBatch.from_arcs(
        features=torch.zeros(NODES, 0),
        source=torch.from_numpy(ends[0]),
        target=torch.from_numpy(ends[1]),
        graph_ptr=torch.tensor([0, NODES]),
        targets=torch.from_numpy(targets),
        target_level="node",
        num_classes=classes,
    )


@pytest.mark.parametrize(
    ("same", "refuted"),
    [(0.9, False), (0.7, False), (0.3, True), (0.0, True)],
)
def test_many_labels_tell(same: float, refuted: bool) -> None:
    found = Alikeness.of(random_graph(same), torch.arange(NODES // 2))
    assert found.is_refuted == refuted
    # Four classes of equal size: a quarter of the pairs are alike by chance.
    assert found.adjusted == pytest.approx((same - 0.25) / 0.75, abs=0.1)


def test_each_pair_counts_once_and_loops_do_not() -> None:
    ends = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 2, 0]])
    batch = GraphBatch.from_arcs(
        features=torch.zeros(4, 0),
        source=ends[0],
        target=ends[1],
        graph_ptr=torch.tensor([0, 4]),
        targets=torch.tensor([0, 0, 1, 1]),
        target_level="node",
        num_classes=2,
    )
    assert Alikeness.of(batch, torch.arange(3)) == Alikeness(2, 1, (3 / 4) ** 2 + (1 / 4) ** 2)


def test_few_labels_refute_nothing() -> None:
    assert not Alikeness(pairs=0, alike=0, chance=0.0).is_refuted
    assert math.isnan(Alikeness(pairs=0, alike=0, chance=0.0).adjusted)
    assert not Alikeness(pairs=8, alike=2, chance=0.2).is_refuted
    assert Alikeness(pairs=80, alike=20, chance=0.2).is_refuted


def test_classes_of_other_nodes_are_not_looked_at() -> None:
    batch, labelled = random_graph(0.9), torch.arange(0, NODES, 3)
    hidden = batch.targets.clone()
    unknown = torch.ones(NODES, dtype=torch.bool)
    unknown[labelled] = False
    hidden[unknown] = 0
    blind = batch.with_targets(hidden, "node", 4)
    assert Alikeness.of(blind, labelled) == Alikeness.of(batch, labelled)


def test_words_keep_their_zeros_and_get_one_scale() -> None:
    random = np.random.RandomState(0)
    words = torch.from_numpy((random.rand(50, 200) < 0.1) * random.rand(50, 200)).float()
    assert are_words(words)
    batch = random_graph(0.5).with_features(torch.cat([words] * 8))
    scaled = FeatureScaler.of_words(words).apply(batch).features
    assert scaled.sum(dim=1).mean() == pytest.approx(WORDS, rel=1e-5)
    assert torch.equal(scaled == 0, batch.features == 0)
    one_hot = torch.eye(200)
    assert not are_words(one_hot)
    assert not are_words(-words)
    assert not are_words(torch.rand(50, 200))
