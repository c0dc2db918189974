"""Hydra's and OmegaConf's errors as one sentence that names the setting and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException, ValidationError

from lpgnn_cli.config.hydra_internals import ConfigLoader
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.suggest import alternatives, did_you_mean, no_such_setting
from lpgnn_cli.config.variants import unfit_variant, variant_hint
from lpgnn_cli.errors import UserError

_KINDS = {
    "Integer": "a whole number",
    "Float": "a number",
    "Boolean": "true or false",
    "String": "text",
}


# More options than this would bury the sentence they are part of.
MOST_LISTED = 30


def is_option(name: str) -> bool:
    """Names with an underscore in front are schemas, not options."""
    return not name.startswith("_")


def groups(loader: ConfigLoader) -> list[str]:
    return [name for name in loader.subgroups("") if name != "hydra" and is_option(name)]


def options(loader: ConfigLoader, group: str) -> list[str]:
    """The options of a group, also of those in folders below it (`lagrangian/mutag`)."""
    found = [name for name in loader.configs(group) if is_option(name)]
    for folder in filter(is_option, loader.subgroups(group)):
        found += [f"{folder}/{option}" for option in options(loader, f"{group}/{folder}")]
    return sorted(found)


def check_groups(loader: ConfigLoader, overrides: Sequence[Override]) -> None:
    """Hydra passes over a misspelt option of an optional group, and over a name that is set by
    hand, which chooses nothing; this does not."""
    known = groups(loader)
    for override in overrides:
        group = override.key_or_group
        if not group:
            raise UserError(f"{override.input_line} has no key: write key=value.")
        named, _, leaf = group.rpartition(".")
        by_hand = leaf == "name" and not override.is_delete()
        if by_hand and named in known and named != "dataset":
            raise UserError(
                f"{group} follows from {named}: write "
                f"{named}={override.get_value_element_as_str()}."
            )
        if override.is_delete() or group not in known:
            continue
        available = options(loader, group)
        if override.value() is None:
            required = group in TrainConfig.__dataclass_fields__
            instead = f"{group}=none" if "none" in available else f"~{group}"
            advice = f"choose {alternatives(available)}" if required else f"write {instead}"
            raise UserError(f"{group} cannot be null: {advice}.")
        for chosen in _chosen(override):
            if chosen not in available:
                variants = options(loader, "variant") if group == "experiment" else []
                hint = variant_hint(chosen, available, variants) or did_you_mean(chosen, available)
                listed = _listed(available)
                raise UserError(f"{group} has no option {chosen}. {hint} {listed}")


def _listed(available: Sequence[str]) -> str:
    if not available:
        return "It has none."
    if len(available) > MOST_LISTED:
        return f"`lpgnn train --help` lists all {len(available)}."
    return f"Options: {', '.join(available)}."


def _chosen(override: Override) -> Iterator[str]:
    value = override.value()
    if override.is_discrete_sweep():
        yield from override.sweep_string_iterator()
    elif isinstance(value, list):
        yield from map(str, value)
    elif isinstance(value, str | int | float):
        yield str(value)


def explain(
    error: Exception,
    loader: ConfigLoader | None = None,
    config_name: str = "",
    overrides: Sequence[str] = (),
) -> str:
    """What is wrong and what to do, in one sentence."""
    if isinstance(error, OverrideParseException):
        return (
            f"{error.override} cannot be read as a setting: write key=value, lists as [1,2], "
            f"and quote what has spaces, commas or letters beyond a to z, for the shell as well: "
            f"'key=\"a value\"'."
        )
    unfit = unfit_variant(error) or _dependent_recipe(error, overrides)
    if unfit:
        return unfit
    if loader is not None and not isinstance(error, MissingConfigException):
        parsed = OverridesParser.create().parse_overrides(list(overrides))
        for override in parsed:
            if override.is_sweep_override() and "multirun" in str(error):
                key = override.key_or_group
                return (
                    f"{override.input_line} has several values: add -m to run each of them, "
                    f"or write {key}=[...] for a list."
                )
        sentence = _unknown_key(loader, config_name, parsed)
        if sentence:
            return sentence
    unfit = _unfit_file(error)
    if unfit:
        return unfit
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    if isinstance(cause, OmegaConfBaseException):
        return _wrong_value(cause)
    return _first_line(error)


def _dependent_recipe(error: Exception, overrides: Sequence[str]) -> str:
    """A sentence about a recipe that Hydra would have to choose before what it depends on."""
    depends = re.search(r"Error resolving interpolation '\$\{(\w+)\}'", str(error))
    named = next((word for word in overrides if word.startswith("recipe=")), None)
    if depends is None or named is None:
        return ""
    dataset = named.rpartition("/")[2]
    return (
        f"{named} depends on the choice of {depends[1]} and cannot be taken by name: "
        f"dataset={dataset} brings it along, and takes a file of your own where it has a "
        "dataset.path."
    )


def _unfit_file(error: Exception) -> str:
    """A sentence about a file, most likely one of the user's own, whose content does not fit."""
    found = re.match(r"In '(.+)': \w+ raised while composing config:\n(.+)", str(error))
    if found is None:
        return ""
    file, reason = found.groups()
    if unknown := re.match(r"Key '(.+)' not in", reason):
        if unknown[1] == file.partition("/")[0]:
            return f"{file}.yaml belongs to the whole config: begin it with `# @package _global_`."
        return f"{file}.yaml sets {unknown[1]}, which is no setting there."
    return f"{file}.yaml cannot be used: {reason}."


def _wrong_value(error: OmegaConfBaseException) -> str:
    key = error.full_key or error.key
    message = _first_line(error)
    if isinstance(error, MissingMandatoryValue):
        return f"{key} has no value yet: add {key}=..."
    if isinstance(error, ValidationError):
        wrong = re.match(r"Value '(.*)' of type '.*' could not be converted to (\w+)", message)
        if wrong and wrong[2] in _KINDS:
            return f"{key} must be {_KINDS[wrong[2]]}, not {wrong[1]}."
        if "is not a valid bool" in message:
            return f"{key} must be true or false: {message}."
        if "Invalid type assigned" in message:
            return f"{key} is not a single setting: set what is inside it, {key}.<name>=<value>."
        if "not a list" in message or "ListConfig" in message:
            return f"{key} must be a list, such as {key}=[16]."
        if "not Optional" in message:
            return f"{key} cannot be null."
    return f"{key}: {message}" if key else message


def _unknown_key(
    loader: ConfigLoader, config_name: str, overrides: Sequence[Override]
) -> str | None:
    """A sentence about the first key that the chosen options do not have."""
    known_groups = groups(loader)
    choices = [
        o.input_line
        for o in overrides
        if o.key_or_group in known_groups and not o.is_sweep_override() and o.input_line
    ]
    try:
        base = loader.load_configuration(config_name, choices, run_mode=RunMode.RUN)
    except (HydraException, OmegaConfBaseException):
        return None
    keys = [key for key in _keys(base) if key.split(".")[0] != "hydra"]
    for override in overrides:
        key = override.key_or_group
        if override.is_add() and key in keys:
            return f"{key} exists already: write {key}=<value>, without the +."
        if override.is_hydra_override() or key in keys or key in known_groups:
            continue
        if OmegaConf.select(base, key, throw_on_missing=False) is not None:
            continue
        if key in base.hydra.runtime.choices:  # a group without a folder, so without options
            return f"{key} has no option {override.value()}. It has none."
        return _missing_here(loader, base, key, [*known_groups, *keys])
    return None


def _missing_here(loader: ConfigLoader, base: DictConfig, key: str, known: Sequence[str]) -> str:
    group, _, rest = key.partition(".")
    if rest and group in groups(loader):
        chosen = base.hydra.runtime.choices.get(group)
        owners = [
            f"{group}={option}"
            for option in options(loader, group)
            if _has_setting(loader, f"{group}/{option}", rest)
        ]
        if owners:
            verb = "has" if len(owners) == 1 else "have"
            return f"{group}={chosen} has no setting {rest}; {alternatives(owners, 'and')} {verb}."
    return no_such_setting(key, known)


def _has_setting(loader: ConfigLoader, config_path: str, key: str) -> bool:
    return key in _keys(loader.read(config_path))


def _keys(config: object, prefix: str = "") -> Iterator[str]:
    if isinstance(config, DictConfig) and not config._is_none() and not config._is_missing():
        for key in map(str, config):
            yield f"{prefix}{key}"
            yield from _keys(config._get_node(key), f"{prefix}{key}.")


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or str(error.__cause__ or type(error).__name__)
    return text.splitlines()[0]
