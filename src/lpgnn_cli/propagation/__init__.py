"""One network, propagated in one of three ways: how states come to be, in training and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import DataShape, Network
from lpgnn_cli.propagation.base import Outcome, Propagation, Step
from lpgnn_cli.propagation.fixed_point import FixedPoint
from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.propagation.layers import Layers
from lpgnn_cli.propagation.solvers import SolveStats

__all__ = ["Outcome", "Propagation", "SolveStats", "Step", "build_propagation"]

Build = Callable[[Network, TrainConfig, Mapping[str, GraphBatch]], Propagation]

PROPAGATIONS: dict[str, Build] = {
    "lagrangian": Lagrangian.build,
    "fixed_point": FixedPoint,
    "layers": Layers,
}


def build_propagation(
    config: TrainConfig, shape: DataShape, sets: Mapping[str, GraphBatch], like: Tensor
) -> Propagation:
    """A new network with fresh weights, of the device and precision of `like`, and what propagates
    it over these named sets of graphs."""
    network = Network(config, shape).to(like)
    return PROPAGATIONS[config.propagation.name](network, config, sets)
