"""The transition functions f_a, one for every row of the table of aggregators."""

from __future__ import annotations

from lpgnn_cli.config.model import AGGREGATORS, AggregatorConfig
from lpgnn_cli.config.registry import import_modules
from lpgnn_cli.model.transitions.base import Sizes, Transition, aggregator

__all__ = ["Sizes", "Transition", "aggregator", "build_transition"]

# Each of them adds its own options.
import_modules(__name__, __path__)


def build_transition(
    config: AggregatorConfig, *, state_size: int, label_size: int, arc_size: int, out_size: int
) -> Transition:
    """The transition a config names; each of the three input sizes may be 0."""
    sizes = Sizes(state=state_size, label=label_size, arc=arc_size, out=out_size)
    transition: Transition = AGGREGATORS.implementation(config)(config, sizes)
    return transition
