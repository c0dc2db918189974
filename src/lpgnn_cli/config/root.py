"""The root schemas of the commands, and their registration with Hydra.

`conf/<group>/<option>.yaml` names its schema in its defaults list (`- _gin`): the names that start
with an underscore are the dataclasses registered here. Those of aggregators, G functions and
datasets come from the registry, and so do the options of plug-ins.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from functools import cache
from multiprocessing import parent_process
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

from lpgnn_cli.config import dataset as d
from lpgnn_cli.config import model as m
from lpgnn_cli.config import sweep as s
from lpgnn_cli.config import tracking as k
from lpgnn_cli.config import training as t
from lpgnn_cli.config.fields import setting
from lpgnn_cli.config.installed import load_plugins
from lpgnn_cli.config.registry import GROUPS
from lpgnn_cli.metrics import score_metrics

# What predictions are written as.
FORMATS = ("csv", "json", "npz")
# Which checkpoint of a unit, as users name them.
CHECKPOINTS = ("selected", "last", "best_on_test")


@dataclass
class TrainConfig:
    """Everything `lpgnn train` needs to know."""

    dataset: d.DatasetConfig = setting()
    data: d.DataConfig = setting(affects_results=False)
    aggregator: m.AggregatorConfig = setting()
    g: m.ConstraintConfig = setting()
    propagation: m.PropagationConfig = setting()
    readout: m.ReadoutConfig = setting()
    inference: m.InferenceConfig = setting()
    protocol: t.ProtocolConfig = setting()
    optim: t.OptimConfig = setting()
    lr: t.LearningRates = setting()
    alike: t.AlikeConfig = setting()
    words_dropout: float | None = setting(low=0, high=1, high_open=True)
    tracking: k.TrackingConfig = setting(affects_results=False)
    layers: int | None = setting(low=1, high=1000)
    state: list[int] = setting(low=1, high=100_000)
    epochs: int | None = setting(low=1)
    seed: int = setting(low=0)
    device: str = setting(affects_results=False)
    threads: int | None = setting(low=1, high=1024)
    precision: str = setting(choices=("float32", "float64", "bf16"))
    tf32: bool = setting()
    evaluate_every: int = setting(low=1)
    checkpoint_every: int = setting(low=1, affects_results=False)
    metric: str = setting(choices=("auto", *(m.name for m in score_metrics())))
    class_weights: str = setting(choices=("none", "balanced"))
    keep_best_on_test: bool = setting(affects_results=False)
    rescore_mb: int = setting(low=0, affects_results=False)
    on_divergence: str = setting(choices=("stop", "skip_fold", "halve_lr"))
    resume: str | None = setting(affects_results=False)
    name: str | None = setting(affects_results=False)
    figures: bool = setting(affects_results=False)
    quiet: bool = setting(affects_results=False)


@dataclass
class SweepConfig(TrainConfig):
    """Everything `lpgnn sweep` needs to know: that of every job, and how jobs are treated."""

    sweep: s.SweepSettings = setting(affects_results=False)


@dataclass
class DatasetsChoose:
    """The groups that datasets choose an option of, so that Hydra can compose datasets alone.

    A network that is trained has its aggregator, and all items of a dataset are read whatever the
    protocol.
    """

    aggregator: m.AggregatorConfig = setting(for_users=False)
    protocol: t.ProtocolConfig = setting(for_users=False)


@dataclass
class NetworksConfig(DatasetsChoose):
    """Which trained networks are asked, about what, and how."""

    run: str = setting()
    checkpoint: str = setting(choices=CHECKPOINTS)
    unit: str | None = setting()
    dataset: d.DatasetConfig | None = setting()
    inference: m.InferenceConfig | None = setting()
    data: d.DataConfig = setting()
    device: str = setting()
    threads: int | None = setting(low=1, high=1024)


@dataclass
class EvalConfig(NetworksConfig):
    """Everything `lpgnn eval` needs to know."""

    tracking: k.TrackingConfig = setting()
    name: str | None = setting()


@dataclass
class PredictConfig(NetworksConfig):
    """Everything `lpgnn predict` needs to know."""

    output: str = setting()
    format: str | None = setting(choices=FORMATS)
    states: bool = setting()
    batch_nodes: int = setting(low=1)
    tracking: k.StoreConfig = setting()


# By the name of the command.
ROOTS: dict[str, type] = {
    "train": TrainConfig,
    "sweep": SweepConfig,
    "eval": EvalConfig,
    "predict": PredictConfig,
}


def not_for_users(command: str) -> set[str]:
    """The settings of a command that nobody can set."""
    schema = ROOTS.get(command)
    listed = fields(schema) if schema else ()
    return {field.name for field in listed if not field.metadata.get("for_users", True)}


# Of the groups that have no registry.
PLAIN_SCHEMAS: dict[str, dict[str, type]] = {
    # A sweep has the settings of `lpgnn train` under a root of its own.
    "_schema": {"train": TrainConfig, "sweep": SweepConfig},
    "readout": {"_readout": m.ReadoutConfig},
    "inference": {
        "_lagrangian": m.InferenceConfig,
        "_iteration": m.IterationConfig,
        "_anderson": m.AndersonConfig,
    },
    "protocol": {
        "_kfold": t.KFoldConfig,
        "_holdout": t.HoldoutConfig,
        "_nested": t.NestedConfig,
        "_transductive": t.TransductiveConfig,
        "_masks": t.MasksConfig,
    },
    "optim": {"_optim": t.OptimConfig, "_sgd": t.SgdConfig},
    "tracking": {"_none": k.TrackingConfig, "_mlflow": k.MlflowConfig},
}


def schemas() -> dict[str, dict[str, type]]:
    """Every schema by group and name, those of plug-ins included."""
    load_plugins()
    return PLAIN_SCHEMAS | {group: options.schemas() for group, options in GROUPS.items()}


def register() -> None:
    """Make schemas and plug-ins known to Hydra; safe to call again, as options may be added."""
    _complain()
    nodes: dict[str | None, dict[str, Any]] = {
        None: {"_eval": EvalConfig, "_predict": PredictConfig},
        **{group: dict(found) for group, found in schemas().items()},
    }
    for group, options in GROUPS.items():
        nodes[group] |= options.plugin_nodes()
    store = ConfigStore.instance()
    for folder, by_name in nodes.items():
        for name, node in by_name.items():
            if not _is_stored(store, folder, name, node):
                store.store(group=folder, name=name, node=node)


def _is_stored(store: ConfigStore, group: str | None, name: str, schema: Any) -> bool:
    """To store a schema takes Hydra milliseconds, and there are dozens."""
    known = store.repo if group is None else store.repo.get(group, {})
    found = known.get(f"{name}.yaml")
    return found is not None and OmegaConf.get_type(found.node) is schema


@cache
def _complain() -> None:
    """Say once which plug-ins do not load; worker processes leave that to their parent."""
    for plugin in load_plugins():
        if plugin.problem and parent_process() is None:
            print(f"lpgnn: {plugin.sentence}", file=sys.stderr)
