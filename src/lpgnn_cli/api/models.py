"""`lpgnn.load`: trained networks, to be asked about graphs that nobody has classified."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lpgnn_cli.api.surroundings import undisturbed
from lpgnn_cli.config.root import CHECKPOINTS, TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.pyg import from_pyg_without_targets
from lpgnn_cli.errors import UserError
from lpgnn_cli.tracking.find import find_checkpoints
from lpgnn_cli.training.device import resolve_device
from lpgnn_cli.training.ensemble import Ensemble, Prediction
from lpgnn_cli.training.scoring import TrainedUnit


class Model:
    """The trained networks of a run, one per unit; their mean is the answer."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble

    @property
    def units(self) -> list[str]:
        """The names of the folds that the networks were trained on."""
        return [trained.unit.name for trained in self._ensemble.units]

    @property
    def config(self) -> TrainConfig:
        return self._ensemble.config

    def predict(self, graphs: Any) -> Prediction:
        """Classes, probabilities and states of graphs, found by the test phase from zero.

        `graphs` are a PyTorch Geometric `Data`, several of them, or a `GraphBatch`, with the node
        and arc features of training in the same columns; eigenvectors are added here. Targets are
        not needed, and not looked at.
        """
        given = graphs if isinstance(graphs, GraphBatch) else from_pyg_without_targets(graphs)
        dataset = self._ensemble.encode(given.to("cpu"))
        with undisturbed():
            return self._ensemble.predict(dataset.batch)

    def __repr__(self) -> str:
        config = self.config
        networks = f"{len(self.units)} networks" if len(self.units) > 1 else self.units[0]
        return (
            f"<Model {config.dataset.name}, {config.propagation.name}, {config.aggregator.name}, "
            f"{networks}>"
        )


def load(
    run: str | os.PathLike[str],
    *,
    unit: str | None = None,
    checkpoint: str = "selected",
    device: str = "auto",
) -> Model:
    """The trained networks of a run: of all its folds, or of one `unit` such as `fold-00`.

    `run` is a Run, a run folder, a checkpoint file or an MLflow run id. `checkpoint` is `selected`
    (the one behind the honest accuracy), `last`, or `best_on_test`, which test labels have chosen
    and which only runs with `keep_best_on_test` have.
    """
    if checkpoint not in CHECKPOINTS:
        names = ", ".join(CHECKPOINTS)
        raise UserError(f"checkpoint must be one of {names}, not {checkpoint}.")
    files: list[Path] = find_checkpoints(os.fspath(run), checkpoint, unit, None)
    return of_checkpoints(files, device)


def of_checkpoints(files: Sequence[Path], device: str) -> Model:
    """The networks in these files, asked together."""
    where = resolve_device(device)
    return Model(Ensemble([TrainedUnit(file, None, where) for file in files]))
