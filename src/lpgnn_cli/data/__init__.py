"""Datasets as one disconnected union of graphs, and their splits."""

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.dataset import Dataset
from lpgnn_cli.data.loading import load_dataset
from lpgnn_cli.data.positional import random_signs, with_signs
from lpgnn_cli.data.scaling import FeatureScaler
from lpgnn_cli.data.splits import Split, fingerprint_splits, make_splits
from lpgnn_cli.data.vocabulary import Vocabulary

__all__ = [
    "Dataset",
    "FeatureScaler",
    "GraphBatch",
    "Split",
    "Vocabulary",
    "fingerprint_splits",
    "load_dataset",
    "make_splits",
    "random_signs",
    "with_signs",
]
