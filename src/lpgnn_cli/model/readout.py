"""The output function f_r, on nodes or on the pooled nodes of a graph.

Shapes: N nodes, G graphs, R what is read of a node, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lpgnn_cli.config.model import ReadoutConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.gate import LabelGate
from lpgnn_cli.model.mlp import MLP, linear_layer, normalisation
from lpgnn_cli.ops import segment_mean, segment_sum, sum_neighbours

POOLS = {"sum": segment_sum, "mean": segment_mean}


class Readout(nn.Module):
    """f_r: normalise, multiply by what the label asks for, hidden layers on nodes, pool those of a
    graph, scale, an MLP to scores."""

    def __init__(
        self,
        config: ReadoutConfig,
        sizes: Sequence[int],
        classes: int,
        target_level: str,
        nodes: float,
        labels: int = 0,
    ) -> None:
        """`sizes` are the state sizes of the layers, lowest first; `nodes` those of a graph;
        `labels` the columns of node labels."""
        super().__init__()
        self.config = config
        # auto, as the paper has it: nodes are read at x, graphs at f_a(x).
        auto = "transition" if target_level == "graph" else "state"
        self.source = auto if config.source == "auto" else config.source
        summed = target_level == "graph" and config.pool == "sum"
        auto_scale = 1 / nodes if summed else 1.0
        self.scale = auto_scale if config.scale is None else config.scale
        read = sum(sizes) if config.layers == "all" else sizes[-1]
        read = 2 * read if config.neighbours else read
        self.norm = normalisation(config.norm, read)
        self.gate = LabelGate(labels, read) if config.label_gate else None
        # Sums over nodes of what is linear in their messages know pairs of neighbours and no more.
        self.nodes = nn.Sequential()
        for size in config.node_hidden:
            self.nodes.extend([linear_layer(read, size), activation(config.activation)])
            read = size
        # Without hidden layers there is no inside to drop from.
        self.dropout = nn.Dropout(0.0 if config.hidden else config.dropout)
        if config.learnt:
            self.mlp = MLP(
                [read, *config.hidden, classes],
                activation=config.activation,
                dropout=config.dropout,
                norm="none",
            )

    def forward(self, layers: Sequence[Tensor], batch: GraphBatch) -> Tensor:
        """Class scores from the states, or the transitions, of all layers."""
        several = self.config.layers == "all" and len(layers) > 1
        read_NR = torch.cat(list(layers), dim=1) if several else layers[-1]
        own_NR = batch.own(read_NR)
        if self.config.neighbours:
            own_NR = torch.cat([own_NR, sum_neighbours(read_NR, batch.arcs)], dim=1)
        read_NR = own_NR
        # Before pooling: normalised sums over a few hundred graphs overfit.
        read_NR = self.norm(read_NR)
        if self.gate is not None:
            read_NR = read_NR * self.gate.of_nodes(batch)
        read_NR = self.nodes(read_NR)
        if batch.target_level == "graph":
            read_NR = POOLS[self.config.pool](read_NR, batch.graph_ptr, batch.graph_of_node)
        scaled: Tensor = self.dropout(read_NR if self.scale == 1 else self.scale * read_NR)
        return self.mlp(scaled) if self.config.learnt else scaled
