"""From a config and the parts of a unit to a learner."""

from __future__ import annotations

from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.model.network import DataShape, Network
from lpgnn_cli.training.backprop import BackpropLearner
from lpgnn_cli.training.evaluation import Part
from lpgnn_cli.training.lagrangian import FrozenLearner, GradientLearner, OneShotLearner
from lpgnn_cli.training.learner import Learner


def build_learner(config: TrainConfig, parts: dict[str, Part]) -> Learner:
    """A new network with fresh weights on the device of the parts, and what trains it."""
    batch = parts["train"].batch
    network = Network(config, DataShape.of(batch)).to(batch.features)
    propagation = config.propagation
    if not isinstance(propagation, LagrangianConfig):
        return BackpropLearner(network, parts, config)
    if propagation.states == "frozen":
        return FrozenLearner(network, parts, config)
    if propagation.updates == "one_shot":
        return OneShotLearner(network, parts, config)
    return GradientLearner(network, parts, config)
