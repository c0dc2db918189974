"""Schemas of the `dataset` group and the data folder."""

from __future__ import annotations

from dataclasses import dataclass

from lpgnn_cli.config.fields import setting

FEATURES = ("auto", "labels", "attributes", "labels+attributes", "degree", "constant", "rbf")


@dataclass
class DatasetConfig:
    """What every dataset has."""

    name: str = setting()
    kind: str = setting(choices=("karate", "pattern", "csl", "tu", "graphs"))
    features: str = setting(choices=FEATURES)
    positional: int = setting(low=0)
    sign_flips: bool = setting()


@dataclass
class KarateConfig(DatasetConfig):
    """Zachary's karate club."""


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


@dataclass
class CslConfig(DatasetConfig):
    """Circulant skip-link graphs."""

    nodes: int = setting(low=5)
    copies: int = setting(low=2)
    skips: list[int] = setting(low=2)


@dataclass
class TuConfig(DatasetConfig):
    """A dataset in TU format, by name from the data folder or the collection, or by path."""

    path: str | None = setting()
    embedded: bool = setting()


@dataclass
class GraphsConfig(DatasetConfig):
    """Graphs of a user's own, in a file of plain arrays."""

    path: str = setting()


@dataclass
class DataConfig:
    """Where datasets live on disk."""

    root: str | None = setting()
