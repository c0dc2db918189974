"""The transition functions f_a, one for every row of the table of aggregators."""

from __future__ import annotations

from lpgnn_cli.config.model import AGGREGATORS, AggregatorConfig
from lpgnn_cli.config.registry import import_modules
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.transitions.base import Sizes, Transition, aggregator

__all__ = ["Sizes", "Transition", "aggregator", "build_transition"]

# Each of them adds its own options.
import_modules(__name__, __path__)


def build_transition(
    config: AggregatorConfig,
    *,
    state_size: int,
    label_size: int,
    arc_size: int,
    out_size: int,
    own_label_only: bool = False,
) -> Transition:
    """The transition a config names; each of the three input sizes may be 0."""
    build = AGGREGATORS.implementation(config)
    if own_label_only and not build.tells_labels_apart:
        raise UserError(
            f"aggregator={config.name} sees labels and states of neighbours as one: "
            "take propagation.upper=all, or another aggregator."
        )
    arc_size = 0 if own_label_only else arc_size
    sizes = Sizes(state_size, label_size, arc_size, out_size, own_label_only)
    transition: Transition = build(config, sizes)
    return transition
