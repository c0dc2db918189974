"""A typed config back from the plain one that run folders and checkpoints hold."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lpgnn_cli.config.check import check
from lpgnn_cli.config.installed import load_plugins
from lpgnn_cli.config.registry import GROUPS
from lpgnn_cli.config.root import SCHEMAS, TrainConfig
from lpgnn_cli.errors import UserError

# Settings that stored configs may have and that no longer exist.
RETIRED = {"dataset.kind"}


def restore_config(plain: dict[str, Any]) -> TrainConfig:
    """The schema of each group follows from its name and its keys: no file names a class."""
    load_plugins()
    config = OmegaConf.structured(TrainConfig)
    try:
        for key, value in plain.items():
            if key in GROUPS or key in SCHEMAS:
                kept = {k: v for k, v in value.items() if f"{key}.{k}" not in RETIRED}
                config[key] = OmegaConf.merge(OmegaConf.structured(_schema(key, kept)), kept)
            else:
                config.merge_with({key: value})
        typed = OmegaConf.to_object(config)
    except (OmegaConfBaseException, TypeError, AttributeError) as error:
        raise UserError(f"the config was written by another version of lpgnn: {error}.") from error
    assert isinstance(typed, TrainConfig)
    check(typed)
    return typed


def _schema(group: str, value: dict[str, Any]) -> type:
    if group in GROUPS:
        found = GROUPS[group].settings_of(value)
    else:
        schemas = SCHEMAS[group].values()
        found = next((s for s in schemas if {f.name for f in fields(s)} == set(value)), None)
    if found is not None:
        return found
    name = str(value.get("name"))
    if group in GROUPS and not GROUPS[group].free_names and name not in GROUPS[group].by_name:
        absent = [plugin.sentence for plugin in load_plugins() if plugin.problem]
        raise UserError(
            f"the config has {group}={name}, which neither lpgnn nor an installed plug-in has. "
            + " ".join(absent)
        )
    raise UserError(
        f"the config was written by another version of lpgnn: its {group} has the settings "
        f"{', '.join(value)}."
    )
