"""A typed config back from the plain one that run folders and checkpoints hold."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lpgnn_cli.config.check import check
from lpgnn_cli.config.installed import load_plugins
from lpgnn_cli.config.registry import GROUPS
from lpgnn_cli.config.root import PLAIN_SCHEMAS, TrainConfig
from lpgnn_cli.errors import UserError
from lpgnn_cli.stored import refuse_interpolations

# Settings that stored configs may have and that no longer exist.
RETIRED = {"dataset.kind"}
# Settings that stored configs may lack, with the values that stand for what was done then.
ADDED: dict[str, Any] = {
    "optim.batch_graphs": None,
    "optim.batch_nodes": None,
    "readout.learnt": True,
    "readout.node_hidden": [],
    "readout.label_gate": False,
    "aggregator.label_gate": False,
    "propagation.solver": "damped",
    "propagation.memory": 5,
    "data.memory": None,
    "alike": {"when": "never", "gain": 0.9, "lr": 1e-3, "weight_decay": 2.0},
    "words_dropout": None,
    "metric": "auto",
    "class_weights": "none",
    "rescore_mb": 0,
    "keep_best_on_test": False,
    "tracking.models": "none",
    "tracking.register": None,
    "tracking.system_metrics": False,
}


def restore_config(plain: dict[str, Any], origin: str = "the config") -> TrainConfig:
    """The schema of each group follows from its name and its keys: no file names a class.

    Nothing is interpolated either: what was stored had been resolved by then.
    """
    refuse_interpolations(plain, origin)
    load_plugins()
    config = OmegaConf.structured(TrainConfig)
    try:
        for key, value in _with_added(plain).items():
            if key in GROUPS or key in PLAIN_SCHEMAS:
                kept = {k: v for k, v in value.items() if f"{key}.{k}" not in RETIRED}
                schema = _schema(key, kept)
                kept |= {f.name: ADDED[f"{key}.{f.name}"] for f in _lacking(schema, kept)}
                config[key] = OmegaConf.merge(OmegaConf.structured(schema), kept)
            else:
                config.merge_with({key: value})
        typed = OmegaConf.to_object(config)
    except (OmegaConfBaseException, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{origin} was written by another version of lpgnn: {reason}.") from error
    assert isinstance(typed, TrainConfig)
    check(typed)
    return typed


def _with_added(plain: dict[str, Any]) -> dict[str, Any]:
    """With what it lacks outside the groups, whose schemas say what they lack."""
    full = dict(plain)
    for key, value in ADDED.items():
        first, _, rest = key.partition(".")
        if first in PLAIN_SCHEMAS or first in GROUPS:
            continue
        full[first] = {rest: value, **full.get(first, {})} if rest else full.get(first, value)
    return full


def _schema(group: str, values: dict[str, Any]) -> type:
    """The schema of that name with just these keys; the keys alone where only one has them."""
    options = GROUPS.get(group)
    name = str(values.get("name"))
    if options is not None and not options.free_names and name not in options.by_name:
        broken = [plugin.sentence for plugin in load_plugins() if plugin.problem]
        raise UserError(
            f"the config has {group}={name}, which neither lpgnn nor an installed plug-in has. "
            + " ".join(broken)
        )
    known = PLAIN_SCHEMAS[group] if options is None else options.schemas()
    fitting = {key: schema for key, schema in known.items() if _fits(group, schema, values)}
    if f"_{name}" in fitting and options is not None:
        return fitting[f"_{name}"]
    by_keys_alone = options is None or options.free_names
    if by_keys_alone and len(set(fitting.values())) == 1:
        return next(iter(fitting.values()))
    raise UserError(
        f"the config was written by another version of lpgnn: its {group} has the settings "
        f"{', '.join(values)}."
    )


def _fits(group: str, schema: type, values: dict[str, Any]) -> bool:
    lacking = {f"{group}.{field.name}" for field in _lacking(schema, values)}
    return values.keys() <= {f.name for f in fields(schema)} and lacking <= ADDED.keys()


def _lacking(schema: type, values: dict[str, Any]) -> list[Field[Any]]:
    return [field for field in fields(schema) if field.name not in values]
