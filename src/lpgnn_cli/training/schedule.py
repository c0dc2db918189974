"""How learning rates change over the epochs, and when there are enough of them."""

from __future__ import annotations

import math

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.training import OptimConfig, ValidatedConfig


def patience_of(config: TrainConfig) -> float:
    """Epochs without a better one after which training stops early; infinite where it does not."""
    protocol = selecting(config)
    return math.inf if protocol is None or _is_planned(config) else protocol.patience


def selecting(config: TrainConfig) -> ValidatedConfig | None:
    """The protocol whose validation part selects an epoch; None where the last one counts."""
    protocol = config.protocol
    if not isinstance(protocol, ValidatedConfig) or protocol.select == "last":
        return None
    return None if protocol.select == "auto" and _is_planned(config) else protocol


def _is_planned(config: TrainConfig) -> bool:
    """A learning rate that is planned over all epochs does its best at their end."""
    return config.optim.schedule != "step"


def learning_rate_scale(config: OptimConfig, epoch: int, epochs: int) -> float:
    """The factor on all learning rates in this epoch, of so many; epochs count from 1."""
    done = (epoch - 1) / epochs
    if config.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * done))
    if config.schedule == "linear":
        return min(1.0, 2 * (1 - done))
    return float(config.decay ** ((epoch - 1) // config.decay_every))
