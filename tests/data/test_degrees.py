"""Degrees as features: each its own column, or classes of them where there are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.data import Dataset, load_dataset
from lpgnn_cli.data.features import NodeTables, choose_features
from lpgnn_cli.data.vocabulary import Vocabulary
from lpgnn_cli.errors import UserError

Config = Callable[..., TuConfig]


def tables(degrees: Sequence[int]) -> NodeTables:
    nodes = len(degrees)
    none = torch.zeros(nodes, 0)
    return NodeTables(labels=none.long(), attributes=none, degrees=torch.tensor(degrees))


def classes(degrees: Sequence[int], trained_on: Sequence[int]) -> Tensor:
    """Of each degree; every row has one indicator."""
    known = Vocabulary(degrees=tuple(trained_on))
    found = choose_features("degree_classes", "x", tables(degrees), known)
    assert (found.values.sum(dim=1) == 1).all()
    assert not found.continuous.any()
    return found.values.argmax(dim=1)


def test_small_degrees_are_their_own_and_large_ones_share_four_classes_to_a_doubling() -> None:
    everything = range(65)
    found = classes(everything, everything)
    assert found[:17].tolist() == list(range(17))
    # They begin at 16, 19.03, 22.6, 26.9 and 32, 38.1, 45.3, 53.8.
    assert found[16:32].bincount()[16:].tolist() == [4, 3, 4, 5]
    assert found[32:64].bincount()[20:].tolist() == [7, 7, 8, 10]
    assert found[64] == 24


def test_degrees_that_training_never_saw_belong_to_the_next_class_below() -> None:
    trained_on = [2, 5, 40]
    assert classes([1, 2, 3, 5, 38, 40, 1000], trained_on).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_a_degree_without_a_column_is_refused_with_a_way_out() -> None:
    known = Vocabulary(degrees=(1, 2))
    with pytest.raises(UserError, match=r"degree 3 was not there .*=degree_classes take"):
        choose_features("degree", "x", tables([1, 3]), known)


def stars(folder: Path, sizes: Sequence[int]) -> Path:
    """One star of each size in TU format, without labels."""
    path = folder / "TINY"
    path.mkdir()
    arcs, graphs, first = [], [], 1
    for graph, size in enumerate(sizes, 1):
        leaves = range(first + 1, first + 1 + size)
        arcs += [f"{a}, {b}" for leaf in leaves for a, b in ((first, leaf), (leaf, first))]
        graphs += [f"{graph}"] * (size + 1)
        first += size + 1
    targets = [f"{graph % 2}" for graph in range(len(sizes))]
    for name, lines in (("A", arcs), ("graph_indicator", graphs), ("graph_labels", targets)):
        (path / f"TINY_{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(("degrees", "columns"), [(100, 100), (101, 26)])
def test_more_than_a_hundred_degrees_share_classes(
    degrees: int, columns: int, tmp_path: Path, tiny_config: Config
) -> None:
    """15 of their own, and 11 from 16 to 101, which is 2.7 times twice as large."""
    config = tiny_config(stars(tmp_path, range(1, degrees + 1)))
    dataset = load_dataset(config, None, 0)
    assert dataset.batch.features.shape[1] == columns


def test_unseen_graphs_have_the_columns_of_training(tmp_path: Path, tiny_config: Config) -> None:
    """However few degrees they have, and though some of these were never seen."""
    trained: Dataset = load_dataset(tiny_config(stars(tmp_path, range(1, 110))), None, 0)
    other = tmp_path / "other"
    other.mkdir()
    unseen = tiny_config(stars(other, [3, 500]))
    batch = load_dataset(unseen, None, 0, trained.vocabulary).batch
    assert batch.features.shape[1] == trained.batch.features.shape[1]
    hub = int(batch.arcs.in_degree.argmax())
    assert batch.features[hub].argmax() == trained.batch.features.shape[1] - 1
