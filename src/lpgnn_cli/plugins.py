"""What a plug-in needs: the decorators that add an option, and what options are made of."""

from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.config.fields import setting
from lpgnn_cli.config.model import (
    AggregatorConfig,
    ConstraintConfig,
    InsensitiveConstraintConfig,
)
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.dataset import Dataset, Request, dataset
from lpgnn_cli.data.pyg import from_pyg
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.activations import activation
from lpgnn_cli.model.constraints import constraint
from lpgnn_cli.model.mlp import MLP
from lpgnn_cli.model.transitions import Sizes, Transition, aggregator
from lpgnn_cli.model.transitions.base import BlockMLP
from lpgnn_cli.ops import (
    gather_source,
    gather_target,
    segment_max,
    segment_mean,
    segment_sum,
    sum_incoming,
    sum_neighbours,
)

__all__ = [
    "MLP",
    "AggregatorConfig",
    "BlockMLP",
    "ConstraintConfig",
    "Dataset",
    "DatasetConfig",
    "GraphBatch",
    "InsensitiveConstraintConfig",
    "Request",
    "Sizes",
    "Transition",
    "UserError",
    "activation",
    "aggregator",
    "constraint",
    "dataset",
    "from_pyg",
    "gather_source",
    "gather_target",
    "segment_max",
    "segment_mean",
    "segment_sum",
    "setting",
    "sum_incoming",
    "sum_neighbours",
]
