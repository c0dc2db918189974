"""The transition functions f_a, one for every row of the table of aggregators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lpgnn_cli.config.model import AggregatorConfig
from lpgnn_cli.model.transitions.arc_mlp import ArcMlp
from lpgnn_cli.model.transitions.base import Sizes, Transition
from lpgnn_cli.model.transitions.filters import Median, Selection
from lpgnn_cli.model.transitions.gat import Gat
from lpgnn_cli.model.transitions.gcn import Gcn
from lpgnn_cli.model.transitions.gin import Gin
from lpgnn_cli.model.transitions.none import NoNeighbours
from lpgnn_cli.model.transitions.sage import Sage

__all__ = ["Transition", "build_transition"]

# The schema of each option's config (`conf/aggregator/`) is the one its class asks for.
_TRANSITIONS: dict[str, Callable[[Any, Sizes], Transition]] = {
    "sum": ArcMlp,
    "avg": ArcMlp,
    "gin": Gin,
    "gcn": Gcn,
    "sage": Sage,
    "gat": Gat,
    "selection": Selection,
    "median": Median,
    "none": NoNeighbours,
}


def build_transition(
    config: AggregatorConfig, *, state_size: int, label_size: int, arc_size: int, out_size: int
) -> Transition:
    """The transition a config names; each of the three input sizes may be 0."""
    sizes = Sizes(state=state_size, label=label_size, arc=arc_size, out=out_size)
    return _TRANSITIONS[config.name](config, sizes)
