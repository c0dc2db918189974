"""From a command and its overrides to a checked, typed config; mistakes become one sentence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import hydra.version
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.utils import setup_globals
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lpgnn_cli.config.check import check
from lpgnn_cli.config.compose_jobs import SweepLoader
from lpgnn_cli.config.explain import check_groups, explain
from lpgnn_cli.config.hydra_internals import ConfigLoader, loader_over
from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.own_datasets import inherit_recipes
from lpgnn_cli.config.root import TrainConfig, not_for_users, register
from lpgnn_cli.config.tracking import MlflowConfig, StoreConfig
from lpgnn_cli.config.training import NestedConfig
from lpgnn_cli.credentials import keep
from lpgnn_cli.errors import UserError

HYDRA_VERSION_BASE = "1.3"


def conf_dir() -> Path:
    """`conf/` inside the installed package, or at the top of the repository."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent.parent / "conf"


def prepare_hydra() -> None:
    """Schemas, resolvers and Hydra's version of behaviour; safe to call again."""
    hydra.version.setbase(HYDRA_VERSION_BASE)
    setup_globals()
    register()


def make_loader(config_dir: str | None = None, config_path: str | None = None) -> ConfigLoader:
    """Hydra's config loader over `conf/` (or `config_path`) and the user's own `config_dir`."""
    prepare_hydra()
    own_folder = None if config_dir is None else os.path.abspath(config_dir)
    if own_folder is not None and not os.path.isdir(own_folder):
        raise UserError(f"--config-dir {config_dir}: there is no such folder.")
    if own_folder is not None:
        inherit_recipes(Path(own_folder), conf_dir())
    return loader_over(config_path or str(conf_dir()), own_folder)


def load(
    loader: ConfigLoader, config_name: str, overrides: Sequence[str], multirun: bool = False
) -> DictConfig:
    """The composed config, Hydra's own part included."""
    words = list(overrides)
    try:
        parsed = _parse(loader, words)
        check_groups(loader, parsed)
        _check_for_users(config_name, parsed)
        return loader.load_configuration(
            config_name, words, run_mode=RunMode.MULTIRUN if multirun else RunMode.RUN
        )
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error, loader, config_name, words)) from error
    except (ValueError, TypeError) as error:
        # Hydra's own, of numbers with thousands of digits and of `~group=1`.
        if isinstance(error, UserError):
            raise
        raise UserError(f"the settings cannot be read: {' '.join(str(error).split())}") from error


def to_typed(config: DictConfig) -> Any:
    """The command's root dataclass from a composed config (without Hydra's part), in range."""
    try:
        typed = OmegaConf.to_object(config)
    except OmegaConfBaseException as error:
        raise UserError(explain(error)) from error
    check(typed)
    tracking = getattr(typed, "tracking", None)
    if isinstance(tracking, MlflowConfig | StoreConfig) and tracking.uri:
        # From a file of the user's own: those of the command line are kept before that.
        tracking.uri = keep(tracking.uri)
    return typed


def compose(command: Literal["train"], overrides: Sequence[str] = ()) -> TrainConfig:
    """What `lpgnn <command> <overrides>` would run with."""
    config: TrainConfig = to_typed(without_hydra(load(make_loader(), command, overrides)))
    return config


def check_overrides(
    loader: ConfigLoader, config_name: str, overrides: Sequence[str], multirun: bool
) -> Any:
    """Find every mistake before any work is done; in a multirun, each value that is swept over.

    The typed config, where there is but one.
    """
    if not multirun:
        typed = to_typed(without_hydra(load(loader, config_name, overrides)))
        _check_that_all_counts(typed, overrides)
        return typed
    master = load(loader, config_name, overrides, multirun=True)
    parsed = [o for o in _parse(loader, overrides) if not o.is_hydra_override()]
    values = [swept for override in parsed if (swept := _swept_values(override))]
    first = [options[0] for options in values]
    jobs = [first]
    for position, options in enumerate(values):
        jobs += [[*first[:position], other, *first[position + 1 :]] for other in options[1:]]
    sharing = SweepLoader(loader)
    for job in jobs:
        try:
            composed = sharing.load_sweep_config(master, job)
        except HydraException:
            composed = load(loader, config_name, job)  # which explains
        _check_that_all_counts(to_typed(without_hydra(composed)), job)
    return None


def given_keys(words: Sequence[str] | None = None) -> list[str]:
    """The settings that were given by hand: by these words, or those that Hydra runs us with."""
    if words is None:
        words = HydraConfig.get().overrides.task if HydraConfig.initialized() else []
    return [word.split("=")[0].lstrip("+~") for word in words]


def _check_that_all_counts(typed: object, words: Sequence[str]) -> None:
    """Refuse what was asked for by hand and has no part in what was chosen beside it."""
    _check_that_g_counts(typed, words)
    _check_that_folds_count(typed, words)


def _check_that_folds_count(typed: object, words: Sequence[str]) -> None:
    """Refuse a number of folds where a file has folds of its own."""
    protocol = getattr(typed, "protocol", None)
    if not isinstance(protocol, NestedConfig) or protocol.splits is None:
        return
    if asked := next((word for word in words if word.startswith("protocol.folds=")), None):
        raise UserError(
            f"{asked} has no part where protocol.splits={protocol.splits} brings its own folds: "
            "leave one of the two out."
        )


def _check_that_g_counts(typed: object, words: Sequence[str]) -> None:
    """Refuse a G that was asked for by hand where the update rule has none to choose."""
    propagation = getattr(typed, "propagation", None)
    if not isinstance(propagation, LagrangianConfig) or propagation.states == "frozen":
        return
    asked = [word for word in words if word.startswith("g=") and word not in ("g=lin", "g=auto")]
    if asked and not propagation.uses_g:
        raise UserError(
            f"{asked[0]} has no part in propagation.updates={propagation.updates}, which follows "
            "the conditions of G = lin: leave one of the two out."
        )


def _check_for_users(config_name: str, overrides: Sequence[Override]) -> None:
    hidden = not_for_users(config_name)
    for override in overrides:
        if (override.key_or_group or "").split(".")[0] in hidden:
            raise UserError(
                f"lpgnn {config_name} has no setting {override.key_or_group}: "
                "that of the trained network holds."
            )


def _parse(loader: ConfigLoader, overrides: Sequence[str]) -> list[Override]:
    """With the loader at hand, glob(...) knows the options it chooses from."""
    return OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))


def _swept_values(override: Override) -> list[str]:
    """One override per value of a sweep; none for an interval, from which only sweepers draw."""
    assert override.input_line is not None
    if not override.is_sweep_override():
        return [override.input_line]
    if not override.is_discrete_sweep():
        return []
    key = override.get_key_element()
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def without_hydra(config: DictConfig) -> DictConfig:
    """The part of a composed config that is the command's own."""
    OmegaConf.set_struct(config, False)
    if "name" in config:
        config.name = config.name  # that of a variant is made from Hydra's choices
    del config["hydra"]
    return config
