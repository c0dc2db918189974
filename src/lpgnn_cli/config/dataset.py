"""Schemas of the `dataset` group and the data folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from lpgnn_cli.config.fields import setting
from lpgnn_cli.config.registry import Options

FEATURES = (
    *("auto", "labels", "attributes", "labels+attributes"),
    *("degree", "degree_classes", "constant", "rbf"),
)

DATASETS: Options[Any] = Options("dataset", common="_common", free_names=True)


@dataclass
class DatasetConfig:
    """What every dataset has."""

    name: str = setting()
    features: str = setting(choices=FEATURES)
    positional: int = setting(low=0, high=1000)
    sign_flips: bool = setting()
    neighbours: str = setting(choices=("parents", "both"))


@DATASETS.declare("karate")
@dataclass
class KarateConfig(DatasetConfig):
    """Zachary's karate club."""


@DATASETS.declare("pattern")
@dataclass
class PatternConfig(DatasetConfig):
    """Subgraph matching and clique localisation: graphs with a pattern hidden in each."""

    pattern: str = setting(choices=("subgraph", "clique"))
    graphs: int = setting(low=1, high=1_000_000)
    nodes: int = setting(low=2, high=10_000)
    subgraph_nodes: int = setting(low=1)
    arc_probability: float = setting(low=0, high=1)
    feature_max: int = setting(low=0)
    noise: float = setting(low=0)

    def disagreements(self) -> Iterator[str]:
        if self.subgraph_nodes > self.nodes:
            yield (
                f"dataset.subgraph_nodes must be at most dataset.nodes ({self.nodes}), "
                f"not {self.subgraph_nodes}."
            )


@DATASETS.declare("csl")
@dataclass
class CslConfig(DatasetConfig):
    """Circulant skip-link graphs."""

    nodes: int = setting(low=5, high=10_000)
    copies: int = setting(low=2, high=100_000)
    skips: list[int] = setting(low=2)


@DATASETS.declare("tu")
@dataclass
class TuConfig(DatasetConfig):
    """A dataset in TU format, by name from the data folder or the collection, or by path."""

    path: str | None = setting()
    embedded: bool = setting()


@DATASETS.declare("graphs")
@dataclass
class GraphsConfig(DatasetConfig):
    """Graphs of a user's own, in a file of plain arrays."""

    path: str = setting()


@DATASETS.declare("nodes")
@dataclass
class NodesConfig(DatasetConfig):
    """One graph with classes of nodes, in a file: by path, or by name from the data folder."""

    path: str | None = setting()
    directed: bool = setting()
    normalise_rows: bool = setting()


@DATASETS.declare("chains")
@dataclass
class ChainsConfig(DatasetConfig):
    """Chains whose class is written on their first node alone."""

    classes: int = setting(low=2, high=100_000)
    chains: int = setting(low=1, high=100_000)
    length: int = setting(low=2, high=100_000)
    columns: int = setting(low=2, high=100_000)
    labelled: float = setting(low=0, low_open=True, high=1, high_open=True)
    validation: float = setting(low=0, low_open=True, high=1, high_open=True)
    directed: bool = setting()

    def disagreements(self) -> Iterator[str]:
        if self.columns < self.classes:
            yield f"dataset.columns must be at least dataset.classes ({self.classes})."
        if self.labelled + self.validation >= 1:
            yield "dataset.labelled and dataset.validation leave nothing to test: lower one."


@dataclass
class TransferConfig(DatasetConfig):
    """Graphs of one shape, each with one node that must answer for a distant one."""

    graphs: int = setting(low=1, high=1_000_000)
    held_out: int = setting(low=1, high=1_000_000)
    directed: bool = setting()


@DATASETS.declare("ring")
@dataclass
class RingConfig(TransferConfig):
    """Ring transfer: the class is written on the opposite node."""

    nodes: int = setting(low=2, high=10_000)
    classes: int = setting(low=2, high=100_000)
    between: float = setting()


@DATASETS.declare("tree")
@dataclass
class TreeConfig(TransferConfig):
    """Neighbours match: the root must answer with the value of the leaf that has its key."""

    depth: int = setting(low=1, high=10)


# How graphs become numbers: a trained network must get unseen ones in the same way. The first two
# hold for graphs from anywhere, the others for those of the same kind.
OF_ALL_KINDS = ("positional", "neighbours")
OF_ONE_KIND = ("features", "directed", "normalise_rows")


def encoded_as(trained: DatasetConfig, given: DatasetConfig, said: Iterable[str]) -> DatasetConfig:
    """The dataset with what it does not say itself as in training; `said` are keys it does say."""
    names = OF_ALL_KINDS + (OF_ONE_KIND if type(given) is type(trained) else ())
    shared = [n for n in names if hasattr(trained, n) and f"dataset.{n}" not in set(said)]
    return replace(given, **{name: getattr(trained, name) for name in shared})


SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([KMGT]I?B)", re.IGNORECASE)
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


@dataclass
class DataConfig:
    """Where datasets live on disk, and how much of a large one in memory."""

    root: str | None = setting()
    memory: str | None = setting()

    @property
    def memory_bytes(self) -> int | None:
        """As a number; None where nothing is said."""
        if self.memory is None:
            return None
        found = SIZE.fullmatch(self.memory.strip())
        assert found is not None, "checked before any work"
        return int(float(found[1]) * UNITS[found[2].upper()])

    def disagreements(self) -> Iterator[str]:
        if self.memory is not None and not SIZE.fullmatch(self.memory.strip()):
            yield f"data.memory must be a size such as 8 GB or 500 MiB, not {self.memory[:40]}."
