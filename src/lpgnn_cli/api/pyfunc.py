"""What MLflow loads a logged model with: `mlflow.pyfunc.load_model("models:/...").predict(graphs)`.

Models name this module, so it stays where it is. Nothing that was pickled is read: the data of a
model are the checkpoints `units/<unit>/model.pt` (see `tracking.models`), one per network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lpgnn_cli.api.models import Model, of_checkpoints
from lpgnn_cli.data.node_link import from_node_link
from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import MODEL
from lpgnn_cli.training.ensemble import Prediction

if TYPE_CHECKING:
    import pandas


class ServedModel:
    """`predict` as MLflow calls it."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def predict(self, graphs: Any, params: Mapping[str, Any] | None = None) -> pandas.DataFrame:
        """One row per graph, or per node where nodes have targets.

        `graphs` are dictionaries as `data.node_link` describes them: one, several, or the rows of
        a table.
        """
        batch = from_node_link(_as_dictionaries(graphs))
        return _table(self.model.predict(batch))


def _load_pyfunc(path: str) -> ServedModel:
    """MLflow's hook: `path` is the folder of the data."""
    files = sorted(Path(path).glob(f"units/*/{MODEL}"))
    if not files:
        raise UserError(f"{path} has no units/<unit>/{MODEL}: it is not a model of lpgnn.")
    return ServedModel(of_checkpoints(files, "auto"))


def _as_dictionaries(graphs: Any) -> list[Mapping[str, Any]]:
    if isinstance(graphs, Mapping):
        return [graphs]
    if hasattr(graphs, "to_dict"):  # a table, whose rows lack what is null
        rows = graphs.to_dict(orient="records")
        return [{k: v for k, v in row.items() if not _is_null(v)} for row in rows]
    return list(graphs)


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _table(prediction: Prediction) -> pandas.DataFrame:
    import pandas

    sizes = prediction.graph_ptr.diff()
    found = {
        "class": prediction.classes,
        "probabilities": prediction.probabilities,
        "values": prediction.values,
    }
    columns = {name: tensor.tolist() for name, tensor in found.items() if tensor is not None}
    rows = len(next(iter(columns.values())))
    place: dict[str, list[int]] = {"graph": list(range(len(sizes)))}
    if rows != len(sizes):
        graph = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        node = torch.arange(rows) - prediction.graph_ptr[graph]
        place = {"graph": graph.tolist(), "node": node.tolist()}
    return pandas.DataFrame(place | columns)
