"""How learning rates change over the epochs."""

from __future__ import annotations

import math

from lpgnn_cli.config.training import OptimConfig


def learning_rate_scale(config: OptimConfig, epoch: int, epochs: int) -> float:
    """The factor on all learning rates in this epoch, of so many; epochs count from 1."""
    done = (epoch - 1) / epochs
    if config.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * done))
    if config.schedule == "linear":
        return min(1.0, 2 * (1 - done))
    return float(config.decay ** ((epoch - 1) // config.decay_every))
