"""What a preset stands for: its composed config, and whether a run had that config.

Composing takes a tenth of a second. What it gave is kept in the cache, with the names and a digest
of the files that took part: it holds until one of them changes, or one that was missing appears.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

import lpgnn_cli.config
from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.config.compose import conf_dir, make_loader, to_typed, without_hydra
from lpgnn_cli.config.effects import essence
from lpgnn_cli.config.hydra_internals import TellingLoader
from lpgnn_cli.data.catalogue import published
from lpgnn_cli.data.storage import cache_folder
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import one_line
from lpgnn_cli.paper.reference import Preset
from lpgnn_cli.processes import ProcessPool, Send, cores
from lpgnn_cli.settings import flat_config
from lpgnn_cli.training.suited import layers_for, length_for

# Fewer take less time one by one than other processes need to start.
MANY = 20


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


def preset_settings(preset: Preset) -> dict[str, str]:
    """The settings of a preset that affect results, as flat names and values."""
    return composed_settings(*preset.overrides)


@cache
def composed_settings(*words: str) -> dict[str, str]:
    """Those of a run with these words after `lpgnn train`; what the data decides is decided."""
    settings = essence(flat_config(composed_text(words)))
    entry = published(settings["dataset.name"])
    if entry and settings.get("layers") == "null":
        settings["layers"] = str(layers_for(entry.graphs, entry.kinds))
    if entry and settings["epochs"] == "null":
        batch = settings["optim.batch_graphs"]
        epochs = length_for(entry.graphs, entry.kinds, None if batch == "null" else int(batch))
        settings["epochs"] = str(epochs)
    return settings


def preset_text(preset: Preset) -> str:
    """The composed config of a preset."""
    return composed_text(preset.overrides)


def composed_text(words: Sequence[str]) -> str:
    """The config that these words compose."""
    kept = _kept(words)
    if kept is not None:
        return kept
    try:
        composed, files = _loader().compose("train", words)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(f"{' '.join(words)} cannot be composed: {one_line(str(error))}") from error
    text = OmegaConf.to_yaml(OmegaConf.structured(to_typed(without_hydra(composed))))
    path = _path(words)
    with contextlib.suppress(OSError):  # a cache that cannot be written is no reason to stop
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, f"# {_digest(files)} {' '.join(files)}\n{text}")
    return text


def compose_ahead(wanted: Iterable[Sequence[str]]) -> None:
    """Compose on all cores what the cache lacks of it; who asks for one of them finds it there."""
    lacking = [words for words in dict.fromkeys(map(tuple, wanted)) if _kept(words) is None]
    if len(lacking) < MANY:
        return
    with ProcessPool(range(cores()), preload=(__name__,)) as pool:
        for number in range(cores()):
            pool.start(number, partial(_compose_all, lacking[number :: cores()]))
        while pool.is_busy:
            list(pool.events(timeout=1.0))


def _compose_all(wanted: Sequence[Sequence[str]], _: Send) -> None:
    for words in wanted:
        with contextlib.suppress(UserError):  # who asks for it is told
            composed_text(words)


def _kept(words: Sequence[str]) -> str | None:
    """What the cache has, if it still holds."""
    path = _path(words)
    if not path.is_file():
        return None
    about, _, text = path.read_text(encoding="utf-8").partition("\n")
    digest, *files = about.removeprefix("# ").split()
    return text if digest == _digest(files) else None


def _path(words: Sequence[str]) -> Path:
    name = hashlib.sha256("\n".join(words).encode()).hexdigest()[:24]
    return cache_folder() / "presets" / _place() / f"{name}.yaml"


def settings_digest(preset: Preset) -> str:
    """A short name for all settings of a preset together."""
    lines = [f"{key}={value}\n" for key, value in sorted(preset_settings(preset).items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:12]


@cache
def _place() -> str:
    """One for each `conf/` and each state of the code that checks it."""
    digest = hashlib.sha256(str(conf_dir()).encode())
    for path in sorted(Path(lpgnn_cli.config.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _digest(files: Sequence[str]) -> str:
    """Of the content of files in `conf/`, given without their suffix."""
    parts = "".join(f"{file} {_content(file)}\n" for file in files)
    return hashlib.sha256(parts.encode()).hexdigest()[:24]


@cache
def _content(file: str) -> str:
    """A digest; empty where there is none, as of schemas, which are code."""
    path = conf_dir() / f"{file}.yaml"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def _loader() -> TellingLoader:
    return TellingLoader(make_loader())
