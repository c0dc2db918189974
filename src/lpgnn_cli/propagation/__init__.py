"""One network, propagated in one of three ways: how states come to be, in training and after."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from lpgnn_cli.config.model import PROPAGATIONS
from lpgnn_cli.config.registry import import_modules
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import DataShape, Network
from lpgnn_cli.propagation.base import Outcome, Propagation, Step
from lpgnn_cli.propagation.solvers import SolveStats

__all__ = ["Outcome", "Propagation", "SolveStats", "Step", "build_propagation"]

# Each of them adds its own option.
import_modules(__name__, __path__)


def build_propagation(
    config: TrainConfig, shape: DataShape, sets: Mapping[str, GraphBatch], like: Tensor
) -> Propagation:
    """A new network with fresh weights, of the device and precision of `like`, and what propagates
    it over these named sets of graphs."""
    network = Network(config, shape).to(like)
    build = PROPAGATIONS.implementation(config.propagation)
    propagation: Propagation = build(network, config, sets)
    return propagation
