"""Datasets of the user's own, as files beside `conf/`, are trained as what they are made of.

Recipes go by the name of a dataset. `dataset/beads.yaml` that begins with `defaults: [graphs, ...]`
has no recipe by its own name, and would be trained by the bare defaults without a word.
"""

from __future__ import annotations

from functools import reduce
from itertools import chain
from pathlib import Path

import yaml
from hydra.core.config_store import ConfigStore

# Where there are files by the name of a dataset.
FOLDERS = ("recipe/*", "variant/_recipe/*")
# What was inherited, by group and name, for the folder that was used last.
_inherited: list[tuple[str, str]] = []


def inherit_recipes(own: Path, shipped: Path) -> None:
    """Give every dataset of a folder the recipes of the shipped one that it begins with, unless the
    folder has some of its own."""
    store = ConfigStore.instance()
    while _inherited:
        group, name = _inherited.pop()
        del reduce(dict.__getitem__, group.split("/"), store.repo)[f"{name}.yaml"]
    for file in sorted((own / "dataset").glob("*.yaml")):
        base = _base_of(file)
        found = (shipped.glob(f"{folder}/{base}.yaml") for folder in FOLDERS)
        for recipe in chain(*found) if base else ():
            group = recipe.parent.relative_to(shipped).as_posix()
            if not any((folder / group / file.name).exists() for folder in (own, shipped)):
                node = {"defaults": [f"/{group}/{base}", "_self_"]}
                store.store(file.stem, node, group=group, package="_global_")
                _inherited.append((group, file.stem))


def _base_of(file: Path) -> str:
    """What comes first in its defaults; empty where nothing does. What cannot be read is told by
    whoever wants to use it."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        first = content["defaults"][0]
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError):
        return ""
    return first.removeprefix("_") if isinstance(first, str) else ""
