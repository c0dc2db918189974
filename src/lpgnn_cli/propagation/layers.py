"""Ordinary graph networks: each transition is applied once, to the output of the one below."""

from __future__ import annotations

from torch import Tensor

from lpgnn_cli.config.model import LayersConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.propagation.base import propagation
from lpgnn_cli.propagation.forward import Forward


@propagation("layers", LayersConfig)
class Layers(Forward):
    """GIN, GCN, GraphSAGE, GAT, or an MLP: there is no state beside what a layer puts out."""

    def propagate(self, batch: GraphBatch) -> tuple[list[Tensor], list[Tensor]]:
        no_state = batch.features.new_zeros(batch.num_nodes, 0)
        transits: list[Tensor] = []
        for layer in range(len(self.network.transitions)):
            transits.append(self.network.transition(layer, no_state, transits, batch))
        return transits, transits
