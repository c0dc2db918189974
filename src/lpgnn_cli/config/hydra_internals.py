"""All that this package uses of `hydra._internal`, which any release of Hydra may change.

Nothing else imports from there (ruff sees to it), so that a new Hydra is met in this file alone.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra._internal.config_loader_impl import ConfigLoaderImpl, get_overrides_dirname
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.utils import _run_hydra, create_config_search_path, get_args_parser
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import Override
from hydra.plugins.completion_plugin import CompletionPlugin
from hydra.plugins.config_source import ConfigResult
from hydra.types import HydraContext, RunMode, TaskFunction
from omegaconf import Container, DictConfig
from yaml import YAMLError

from lpgnn_cli.errors import UserError

# What Hydra calls the folder of --config-dir.
OWN_FOLDER = "command-line"


class _Files(ConfigRepository):
    """A file that cannot be read, as one of the user's own may be, is said in a sentence."""

    def load_config(self, config_path: str) -> ConfigResult | None:
        try:
            return super().load_config(config_path)
        except (YAMLError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(f"{config_path}.yaml cannot be read: {reason}.") from error


class ConfigLoader(ConfigLoaderImpl):
    """Hydra's config loader, and what it knows about the files of a group."""

    def __init__(self, config_search_path: ConfigSearchPath) -> None:
        super().__init__(config_search_path)
        self.repository = _Files(config_search_path)

    @property
    def own_folder(self) -> str | None:
        """The user's own folder of options, if one was given."""
        paths = {e.provider: e.path for e in self.config_search_path.get_path()}
        return (paths.get(OWN_FOLDER) or "").removeprefix("file://") or None

    def configs(self, group: str) -> list[str]:
        return self.repository.get_group_options(group, ObjectType.CONFIG)

    def subgroups(self, group: str) -> list[str]:
        return self.repository.get_group_options(group, ObjectType.GROUP)

    def is_group(self, name: str) -> bool:
        return self.repository.group_exists(name)

    def read(self, config_path: str) -> Container | None:
        """One file (or schema) by itself, as `g/abs`."""
        loaded = self.repository.load_config(config_path)
        return None if loaded is None else loaded.config

    def set_values(self, config: DictConfig, overrides: Sequence[Override]) -> None:
        """Overrides that choose no file, applied to a composed config."""
        self._apply_overrides_to_config(list(overrides), config)


class _ReadOnce(_Files):
    """Every file is read once, and noted whenever it is asked for, there or not."""

    def __init__(self, original: ConfigRepository) -> None:
        self.sources = original.sources
        self.asked: set[str] = set()
        self._read: dict[str, ConfigResult | None] = {}

    def load_config(self, config_path: str) -> ConfigResult | None:
        self.asked.add(config_path)
        if config_path not in self._read:
            self._read[config_path] = super().load_config(config_path)
        # What is composed takes the parts of a file into itself.
        return copy.deepcopy(self._read[config_path])

    def __deepcopy__(self, memo: Any) -> _ReadOnce:
        """Hydra copies the repository for each config, and only reads from the copy."""
        return self


class TellingLoader(ConfigLoader):
    """A loader of many configs in a row that tells which files take part in each."""

    def __init__(self, loader: ConfigLoader) -> None:
        super().__init__(config_search_path=loader.config_search_path)
        self._files = _ReadOnce(self.repository)
        self.repository = self._files

    def compose(self, config_name: str, words: Sequence[str]) -> tuple[DictConfig, list[str]]:
        """A config, and the files asked for, without suffix; some are schemas or do not exist."""
        self._files.asked.clear()
        config = self.load_configuration(config_name, list(words), RunMode.RUN)
        return config, sorted(self._files.asked)


def loader_over(folder: str, own_folder: str | None) -> ConfigLoader:
    """A loader of the configs in a folder and, before the schemas, in the user's own folder."""
    search_path = create_config_search_path(folder)
    if own_folder is not None:
        search_path.prepend(
            provider=OWN_FOLDER,
            path=f"file://{own_folder}",
            anchor=SearchPathQuery(provider="schema"),
        )
    return ConfigLoader(config_search_path=search_path)


def override_dirname(overrides: Sequence[Override], naming: DictConfig) -> str:
    """What `hydra.job.override_dirname` is for these overrides."""
    return get_overrides_dirname(
        list(overrides),
        exclude_keys=naming.exclude_keys,
        item_sep=naming.item_sep,
        kv_sep=naming.kv_sep,
    )


def make_context(loader: ConfigLoader, config: DictConfig) -> HydraContext:
    """What sweepers and launchers are set up with."""
    return HydraContext(config_loader=loader, callbacks=Callbacks(config))


def make_flag_parser() -> argparse.ArgumentParser:
    """The parser of Hydra's own flags."""
    return get_args_parser()


def run_app(
    arguments: argparse.Namespace,
    parser: argparse.ArgumentParser,
    task: TaskFunction,
    config_path: str,
    config_name: str,
) -> None:
    """Do what the flags say; `SystemExit` is how this may end."""
    _run_hydra(arguments, parser, task, config_path, config_name)


def completion_plugin(loader: ConfigLoader, shell: str) -> CompletionPlugin:
    """Hydra's completion for bash, zsh or fish."""
    # Imported here, as nothing else needs Hydra's whole application.
    from hydra._internal.hydra import Hydra

    return Hydra.get_shell_to_plugin_map(loader)[shell][0]
