"""Schema of the `tracking` group."""

from __future__ import annotations

from dataclasses import dataclass

from lpgnn_cli.config.fields import setting


@dataclass
class TrackingConfig:
    """Where runs are mirrored to; the run folder is always written."""

    name: str = setting(choices=("mlflow", "none"))


@dataclass
class StoreConfig:
    """An MLflow store to read from."""

    uri: str | None = setting()


@dataclass
class MlflowConfig(TrackingConfig):
    """The MLflow mirror."""

    uri: str | None = setting()
    experiment: str = setting()
    models: str = setting(choices=("auto", "all", "none"))
    register: str | None = setting()
    system_metrics: bool = setting()
