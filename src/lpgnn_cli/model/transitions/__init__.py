"""The transition functions f_a, one for every row of the table of aggregators."""

from __future__ import annotations

from lpgnn_cli.config.model import AggregatorConfig, ArcMlpConfig
from lpgnn_cli.model.transitions.arc_mlp import ArcMlp
from lpgnn_cli.model.transitions.base import Transition

__all__ = ["Transition", "build_transition"]


def build_transition(
    config: AggregatorConfig, *, state_size: int, label_size: int, arc_size: int, out_size: int
) -> Transition:
    """The transition a config names; any of the three input sizes may be 0."""
    sizes = (state_size, label_size, arc_size, out_size)
    match config:
        case ArcMlpConfig():
            return ArcMlp(config, *sizes)
    raise AssertionError(f"no transition for {config.name}")
