"""The Python door: `import lpgnn_cli as lpgnn`.

It does what the commands do, with the same settings and the same sentences when something is wrong;
`docs/python.md` shows it by examples.
"""

from lpgnn_cli.api.graphs import save_graphs
from lpgnn_cli.api.models import Model, load
from lpgnn_cli.api.runs import Fold, Run
from lpgnn_cli.api.sweeps import Row, Sweep, sweep
from lpgnn_cli.api.training import Interrupted, train
from lpgnn_cli.training.ensemble import Prediction

__all__ = [
    "Fold",
    "Interrupted",
    "Model",
    "Prediction",
    "Row",
    "Run",
    "Sweep",
    "load",
    "save_graphs",
    "sweep",
    "train",
]
