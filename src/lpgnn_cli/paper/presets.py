"""What a preset stands for: its composed config, and whether a run had that config.

Composing takes a quarter of a second, so what the present `conf/` gives is kept in the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from functools import cache

from omegaconf import OmegaConf

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.config.compose import conf_dir, load, make_loader, to_typed, without_hydra
from lpgnn_cli.config.effects import essence
from lpgnn_cli.config.hydra_internals import ConfigLoader
from lpgnn_cli.data.storage import cache_folder
from lpgnn_cli.paper.reference import Preset
from lpgnn_cli.settings import flat_config


def departures(preset: Preset, settings: Mapping[str, str]) -> list[str]:
    """The settings in which a run departs from a preset: `layers=2 instead of 1`.

    A setting that only one of them has came or went with a version. Where another option of a group
    brings other settings, that option's name differs too.
    """
    wanted = preset_settings(preset)
    return [
        f"{key}={value} instead of {wanted[key]}"
        for key, value in settings.items()
        if wanted.get(key, value) != value
    ]


@cache
def preset_settings(preset: Preset) -> dict[str, str]:
    """The settings of a preset that affect results, as flat names and values."""
    return essence(flat_config(preset_text(preset)))


def preset_text(preset: Preset) -> str:
    """The composed config of a preset, as a run of it would write it."""
    path = cache_folder() / "presets" / conf_digest() / f"{preset.name}.yaml"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    composed = load(_loader(), "train", preset.overrides)
    text = OmegaConf.to_yaml(OmegaConf.structured(to_typed(without_hydra(composed))))
    with contextlib.suppress(OSError):  # a cache that cannot be written is no reason to stop
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    return text


def settings_digest(preset: Preset) -> str:
    """A short name for all settings of a preset together."""
    lines = [f"{key}={value}\n" for key, value in sorted(preset_settings(preset).items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


@cache
def conf_digest() -> str:
    """sha256 over all of `conf/`."""
    root = conf_dir()
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.yaml")):
        with contextlib.suppress(OSError):
            digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:24]


@cache
def _loader() -> ConfigLoader:
    return make_loader()
