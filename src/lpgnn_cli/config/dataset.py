"""Schemas of the `dataset` group and the data folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lpgnn_cli.config.fields import setting
from lpgnn_cli.config.registry import Options

FEATURES = ("auto", "labels", "attributes", "labels+attributes", "degree", "constant", "rbf")

DATASETS: Options[Any] = Options("dataset", common="_common", free_names=True)


@dataclass
class DatasetConfig:
    """What every dataset has."""

    name: str = setting()
    features: str = setting(choices=FEATURES)
    positional: int = setting(low=0)
    sign_flips: bool = setting()


@DATASETS.declare("karate")
@dataclass
class KarateConfig(DatasetConfig):
    """Zachary's karate club."""


@DATASETS.declare("pattern")
@dataclass
class PatternConfig(DatasetConfig):
    """Subgraph matching and clique localisation: graphs with a pattern hidden in each."""

    pattern: str = setting(choices=("subgraph", "clique"))
    graphs: int = setting(low=1)
    nodes: int = setting(low=2)
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

    nodes: int = setting(low=5)
    copies: int = setting(low=2)
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


@dataclass
class DataConfig:
    """Where datasets live on disk."""

    root: str | None = setting()
