"""A typed config back from the plain one that run folders and checkpoints hold."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lpgnn_cli.config.check import check
from lpgnn_cli.config.root import SCHEMAS, TrainConfig
from lpgnn_cli.errors import UserError


def restore_config(plain: dict[str, Any]) -> TrainConfig:
    """The schema of each group is the one that has just these keys: no class is named in a file."""
    config = OmegaConf.structured(TrainConfig)
    try:
        for key, value in plain.items():
            if key in SCHEMAS:
                config[key] = OmegaConf.merge(OmegaConf.structured(_schema(key, value)), value)
            else:
                config.merge_with({key: value})
        typed = OmegaConf.to_object(config)
    except (OmegaConfBaseException, TypeError) as error:
        raise UserError(f"the config was written by another version of lpgnn: {error}.") from error
    assert isinstance(typed, TrainConfig)
    check(typed)
    return typed


def _schema(group: str, value: dict[str, Any]) -> type:
    for schema in SCHEMAS[group].values():
        if {f.name for f in fields(schema)} == set(value):
            return schema
    raise UserError(
        f"the config was written by another version of lpgnn: its {group} has the settings "
        f"{', '.join(value)}."
    )
