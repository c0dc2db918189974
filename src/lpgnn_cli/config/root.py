"""The root schemas of the commands, and their registration with Hydra.

`conf/<group>/<option>.yaml` names its schema in its defaults list (`- _arc_mlp`): the names
that start with an underscore are the dataclasses registered here.
"""

from __future__ import annotations

from dataclasses import dataclass

from hydra.core.config_store import ConfigStore

from lpgnn_cli.config import dataset as d
from lpgnn_cli.config import model as m
from lpgnn_cli.config import sweep as s
from lpgnn_cli.config import tracking as k
from lpgnn_cli.config import training as t
from lpgnn_cli.config.fields import setting


@dataclass
class TrainConfig:
    """Everything `lpgnn train` needs to know."""

    dataset: d.DatasetConfig = setting()
    data: d.DataConfig = setting()
    aggregator: m.AggregatorConfig = setting()
    g: m.ConstraintConfig = setting()
    propagation: m.PropagationConfig = setting()
    readout: m.ReadoutConfig = setting()
    inference: m.InferenceConfig = setting()
    protocol: t.ProtocolConfig = setting()
    optim: t.OptimConfig = setting()
    lr: t.LearningRates = setting()
    tracking: k.TrackingConfig = setting()
    layers: int = setting(low=1)
    state: list[int] = setting(low=1)
    epochs: int = setting(low=1)
    seed: int = setting(low=0)
    device: str = setting()
    threads: int | None = setting(low=1)
    precision: str = setting(choices=("float32", "float64", "bf16"))
    tf32: bool = setting()
    checkpoint_every: int = setting(low=1)
    on_divergence: str = setting(choices=("stop", "skip_fold", "halve_lr"))
    resume: str | None = setting()
    name: str | None = setting()
    figures: bool = setting()
    quiet: bool = setting()


@dataclass
class SweepConfig(TrainConfig):
    """Everything `lpgnn sweep` needs to know: that of every job, and how jobs are treated."""

    sweep: s.SweepSettings = setting()


@dataclass
class EvalConfig:
    """Everything `lpgnn eval` needs to know."""

    run: str = setting()
    checkpoint: str = setting(choices=("selected", "last", "best"))
    unit: str | None = setting()
    dataset: d.DatasetConfig | None = setting()
    inference: m.InferenceConfig | None = setting()
    protocol: t.ProtocolConfig = setting()
    data: d.DataConfig = setting()
    tracking: k.TrackingConfig = setting()
    device: str = setting()
    threads: int | None = setting(low=1)
    name: str | None = setting()


SCHEMAS: dict[str, dict[str, type]] = {
    # A sweep has the settings of `lpgnn train` under a root of its own.
    "_schema": {"train": TrainConfig, "sweep": SweepConfig},
    "dataset": {
        "_karate": d.KarateConfig,
        "_pattern": d.PatternConfig,
        "_csl": d.CslConfig,
        "_tu": d.TuConfig,
        "_graphs": d.GraphsConfig,
    },
    "aggregator": {
        "_arc_mlp": m.ArcMlpConfig,
        "_gin": m.GinConfig,
        "_gat": m.GatConfig,
        "_filter": m.FilterConfig,
        "_plain": m.AggregatorConfig,
    },
    "g": {"_plain": m.ConstraintConfig, "_insensitive": m.InsensitiveConstraintConfig},
    "propagation": {
        "_lagrangian": m.LagrangianConfig,
        "_fixed_point": m.FixedPointConfig,
        "_layers": m.LayersConfig,
    },
    "readout": {"_readout": m.ReadoutConfig},
    "inference": {
        "_lagrangian": m.InferenceConfig,
        "_iteration": m.IterationConfig,
        "_anderson": m.AndersonConfig,
    },
    "protocol": {
        "_kfold": t.KFoldConfig,
        "_holdout": t.HoldoutConfig,
        "_transductive": t.TransductiveConfig,
    },
    "optim": {"_optim": t.OptimConfig, "_sgd": t.SgdConfig},
    "tracking": {"_none": k.TrackingConfig, "_mlflow": k.MlflowConfig},
}


def register() -> None:
    """Make the schemas known to Hydra; safe to call again."""
    store = ConfigStore.instance()
    store.store(name="_eval", node=EvalConfig)
    for group, schemas in SCHEMAS.items():
        for name, schema in schemas.items():
            store.store(group=group, name=name, node=schema)
