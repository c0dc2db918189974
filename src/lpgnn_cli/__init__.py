"""Lagrangian Propagation Graph Neural Networks: an experiment runner.

    import lpgnn_cli as lpgnn

    run = lpgnn.train(dataset="mutag", g="abs_eps", epochs=100)
    prediction = lpgnn.load(run).predict(graphs)

Nothing heavy is imported before a name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpgnn_cli.errors import RunFailed, UserError
from lpgnn_cli.version import __version__

if TYPE_CHECKING:
    from lpgnn_cli.api import (
        Fold,
        Interrupted,
        Model,
        Prediction,
        Row,
        Run,
        Sweep,
        load,
        save_graphs,
        sweep,
        train,
    )
    from lpgnn_cli.data.batch import GraphBatch
    from lpgnn_cli.data.pyg import from_pyg

__all__ = [
    "Fold",
    "GraphBatch",
    "Interrupted",
    "Model",
    "Prediction",
    "Row",
    "Run",
    "RunFailed",
    "Sweep",
    "UserError",
    "__version__",
    "from_pyg",
    "load",
    "save_graphs",
    "sweep",
    "train",
]

# Where names live that are not in `api`.
_ELSEWHERE = {"GraphBatch": "lpgnn_cli.data.batch", "from_pyg": "lpgnn_cli.data.pyg"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "lpgnn_cli.api")), name)


def __dir__() -> list[str]:
    return __all__
