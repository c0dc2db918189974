"""Composing thousands of jobs: those that choose the same options share one composition.

Hydra composes a config in 0.2 s of CPU, mostly to read YAML and to find out which files belong to
it. Jobs that differ in single values alone have the same files: they get a copy, and their values.
"""

from __future__ import annotations

import copy
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lpgnn_cli.config.hydra_internals import ConfigLoader, override_dirname

KEPT = 64


class SweepLoader(ConfigLoader):
    """A config loader that remembers what it composed for the jobs of a sweep."""

    def __init__(self, loader: ConfigLoader) -> None:
        super().__init__(config_search_path=loader.config_search_path)
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def load_sweep_config(
        self, master_config: DictConfig, sweep_overrides: list[str]
    ) -> DictConfig:
        parsed = OverridesParser.create().parse_overrides(sweep_overrides)
        values = [override for override in parsed if not self._selects_files(override)]
        choices = [o.input_line or "" for o in parsed if self._selects_files(o)]
        hydra = OmegaConf.to_container(master_config.hydra.overrides.hydra)
        assert isinstance(hydra, list)
        config_name = master_config.hydra.job.config_name
        config = copy.deepcopy(self._compose(config_name, [*map(str, hydra), *choices]))
        try:
            self.set_values(config, values)
        except OmegaConfBaseException as error:
            raise ConfigCompositionException(str(error)) from error
        own = [override for override in parsed if not override.is_hydra_override()]
        config.hydra.overrides.task = [override.input_line for override in own]
        naming = config.hydra.job.config.override_dirname
        config.hydra.job.override_dirname = override_dirname(own, naming)
        OmegaConf.copy_cache(from_config=master_config, to_config=config)
        return config

    def _selects_files(self, override: Override) -> bool:
        """Whether it takes part in finding the files, rather than setting a value in the end."""
        if override.is_hydra_override():
            return True
        return self.is_group(override.key_or_group) and not isinstance(override.value(), dict)

    def _compose(self, config_name: str | None, words: list[str]) -> DictConfig:
        key = (config_name or "", *words)
        if key not in self._composed:
            if len(self._composed) >= KEPT:
                self._composed.pop(next(iter(self._composed)))
            self._composed[key] = self.load_configuration(config_name, words, RunMode.RUN)
        return self._composed[key]

    def __getstate__(self) -> dict[str, Any]:
        """Other processes get the loader without what it remembers."""
        return {**self.__dict__, "_composed": {}}
