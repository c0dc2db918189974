"""The control: states that stay zero."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.network import Network
from lpgnn_cli.propagation.forward import Forward
from lpgnn_cli.propagation.lagrangian import update_rule


@update_rule("frozen")
class Frozen(Forward):
    """The control: x stays zero, only theta learns, nothing diffuses beyond one hop per layer."""

    def __init__(
        self, network: Network, config: TrainConfig, sets: Mapping[str, GraphBatch]
    ) -> None:
        super().__init__(network, config, sets)
        assert isinstance(config.propagation, LagrangianConfig)
        self.hands_up_transition = config.propagation.hand_up == "transition"

    def propagate(self, batch: GraphBatch) -> tuple[list[Tensor], list[Tensor]]:
        x = self.network.zero_states(batch)
        return x, self.transit(x, batch)
