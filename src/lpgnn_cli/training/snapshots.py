"""Node embeddings over the epochs, for networks whose last state has two dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.metrics import CLASSES
from lpgnn_cli.model.network import state_sizes
from lpgnn_cli.propagation import Propagation
from lpgnn_cli.training.suited import length_of

FRAMES = 60


class StateSnapshots:
    """What f_r reads of every training node, some sixty times over a run."""

    def __init__(self, config: TrainConfig, propagation: Propagation, batch: GraphBatch) -> None:
        self.propagation = propagation
        self.batch = batch
        self.every = max(1, length_of(config) // FRAMES)
        self.last_epoch = length_of(config)
        of_nodes = batch.target_level == "node" and batch.task == CLASSES
        self.wanted = state_sizes(config, batch.num_classes)[-1] == 2 and of_nodes
        self.epochs: list[int] = []
        self.states: list[Tensor] = []
        self.weights: list[Tensor] = []
        self.biases: list[Tensor] = []

    def take(self, epoch: int) -> None:
        if not self.wanted or (epoch != 1 and epoch % self.every and epoch != self.last_epoch):
            return
        self.epochs.append(epoch)
        self.states.append(self._read().cpu())
        readout = self.propagation.network.readout
        if not readout.config.learnt:
            return
        mlp = readout.mlp
        if mlp.first is mlp.last:
            self.weights.append(mlp.last.weight.detach().cpu().clone())
            self.biases.append(mlp.last.bias.detach().cpu().clone())

    def _read(self) -> Tensor:
        """What f_r reads at the last layer."""
        network = self.propagation.network
        outcome = self.propagation.evaluate("train", self.batch)
        source = network.source(outcome.states, outcome.transits)
        return network.readout.scale * source[-1]

    def write(self, folder: Path) -> None:
        if not self.epochs:
            return
        batch = self.batch
        arrays: dict[str, Any] = {
            "epochs": np.array(self.epochs),
            "states": torch.stack(self.states).numpy(),
            "targets": batch.targets.cpu().numpy(),
            "arcs": torch.stack([batch.arcs.source, batch.arcs.target]).cpu().numpy(),
        }
        if self.weights:
            arrays["weight"] = torch.stack(self.weights).numpy()
            arrays["bias"] = torch.stack(self.biases).numpy()
        np.savez_compressed(folder / "states.npz", **arrays)

    def state_dict(self) -> dict[str, Any]:
        return {
            "epochs": list(self.epochs),
            "states": list(self.states),
            "weights": list(self.weights),
            "biases": list(self.biases),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.epochs = list(saved["epochs"])
        self.states = list(saved["states"])
        self.weights = list(saved["weights"])
        self.biases = list(saved["biases"])
