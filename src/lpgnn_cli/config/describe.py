"""`lpgnn <command> --help`: every setting with its value and the comment above it in `conf/`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf

from lpgnn_cli.config.compose import load
from lpgnn_cli.config.explain import groups, options
from lpgnn_cli.config.hydra_internals import ConfigLoader
from lpgnn_cli.config.registry import GROUPS
from lpgnn_cli.config.root import not_for_users

MANY_OPTIONS = 30
_KEY = re.compile(r"(?P<indent> *)(?P<key>\w+):")


@dataclass
class Comments:
    """What a YAML file says about itself and about each of its keys."""

    title: str = ""
    settings: dict[str, str] = field(default_factory=dict)


def read_comments(text: str) -> Comments:
    """The comment above a key describes it, and the keys that follow without a gap."""
    found = Comments()
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    running = ""
    started = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            words = stripped.lstrip("#").strip()
            if not words.startswith("@package"):
                comment.append(words)
            continue
        match = _KEY.match(line)
        if not started and stripped:
            found.title, comment, started = " ".join(comment), [], True
        if match is None:
            comment, running = [], ""
            continue
        indent = len(match["indent"])
        path = [(depth, name) for depth, name in path if depth < indent]
        path.append((indent, match["key"]))
        running = " ".join(comment) if comment else running
        comment = []
        if running:
            found.settings[".".join(name for _, name in path)] = running
        if stripped.endswith(":"):
            running = ""
    return found


def describe(
    loader: ConfigLoader,
    config_name: str,
    overrides: Sequence[str],
    command: str,
    summary: str,
) -> str:
    """The help screen of a command for what has been chosen so far."""
    config = load(loader, config_name, overrides)
    titles, comments = _comments(loader, config_name, overrides)
    choices = config.hydra.runtime.choices
    width = min(shutil.get_terminal_size().columns, 100)
    lines = [
        f"lpgnn {command}: {summary}.",
        "",
        f"usage: lpgnn {command} [group=option ...] [setting=value ...] [flags]",
        "",
        "Groups, each with its options; the chosen one is in brackets:",
    ]
    hidden = not_for_users(config_name)
    for group in sorted(g for g in groups(loader) if g in choices and g not in hidden):
        chosen = choices[group]
        listed = [f"[{o}]" if o == chosen else o for o in _some(options(loader, group), chosen)]
        if listed:
            lines += _entry(group, ", ".join(listed), width, indent=14)
    lines += ["", "Settings, with their values:"]
    names = [str(name) for name in config if name not in ("hydra", *hidden)]
    nested = [name for name in names if isinstance(config._get_node(name), DictConfig)]
    for name in [*(n for n in names if n not in nested), *nested]:
        if name in nested:
            lines.append("")
        if choices.get(name):
            lines.append(f"  {name}={choices[name]}")
            lines += wrap(titles.get(name, ""), width, initial_indent="  ", subsequent_indent="  ")
        for key, value in _leaves(config, name):
            if key in comments:
                lines += _entry(f"{key}={value}", comments[key], width, indent=34)
    lines += [
        "",
        "Flags (Hydra's own):",
        *_entry("--cfg job", "print the composed config and stop", width, indent=34),
        *_entry("-m, --multirun", "run every combination of a=1,2 b=x,y", width, indent=34),
        *_entry("--config-dir DIR", "add a folder with options of your own", width, indent=34),
        *_entry("--info", "say where each part of the config comes from", width, indent=34),
        *_entry("--hydra-help", "all other flags", width, indent=34),
    ]
    return "\n".join(lines)


def _comments(
    loader: ConfigLoader, config_name: str, overrides: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Titles by group and comments by full key, from the files that the choices bring in."""
    titles: dict[str, str] = {}
    comments: dict[str, str] = {}
    defaults = loader.compute_defaults_list(config_name, list(overrides), RunMode.RUN)
    for default in defaults.defaults:
        found = _find_comments(loader, default.config_path or "")
        if found is None:
            continue
        package = default.package or ""
        if package:
            titles[package] = found.title
        for key, comment in found.settings.items():
            comments[f"{package}.{key}" if package else key] = comment
    return titles, comments


def _find_comments(loader: ConfigLoader, config_path: str) -> Comments | None:
    """Those of a file, or those of a plug-in's option."""
    text = _source(loader, config_path)
    if text is not None:
        return read_comments(text)
    group, _, name = config_path.rpartition("/")
    said = GROUPS[group].comments(name) if group in GROUPS else None
    return Comments(*said) if said else None


def _source(loader: ConfigLoader, config_path: str) -> str | None:
    for source in loader.get_sources():
        if source.scheme() == "file":
            path = Path(source.path) / f"{config_path}.yaml"
            if path.is_file():
                return path.read_text(encoding="utf-8")
    return None


def _leaves(config: DictConfig, key: str) -> Iterator[tuple[str, str]]:
    node = OmegaConf.select(config, key, throw_on_missing=False)
    if isinstance(node, DictConfig):
        for name in map(str, node):
            yield from _leaves(config, f"{key}.{name}")
    elif isinstance(node, ListConfig):
        yield key, f"[{','.join(map(str, node))}]"
    elif isinstance(node, bool):
        yield key, str(node).lower()
    elif node is None:
        missing = OmegaConf.is_missing(*_parent(config, key))
        yield key, "???" if missing else "null"
    else:
        yield key, str(node)


def _parent(config: DictConfig, key: str) -> tuple[DictConfig, str]:
    head, _, leaf = key.rpartition(".")
    node = OmegaConf.select(config, head) if head else config
    assert isinstance(node, DictConfig)
    return node, leaf


def _some(options: list[str], chosen: object) -> list[str]:
    """All options, or one of each kind and how many there are where that would fill the screen."""
    if len(options) <= MANY_OPTIONS:
        return options
    kinds = {re.split("[_/]", option)[0]: option for option in reversed(options)}
    shown = [o for o in options if o in kinds.values() or o == chosen]
    return [*shown, f"... ({len(options)} in all; TAB completes them)"]


def _entry(name: str, text: str, width: int, indent: int) -> list[str]:
    """Name on the left, wrapped text on the right; a long name has a line of its own."""
    head, pad = f"  {name}", " " * indent
    body = wrap(text, max(width - indent, 20)) or [""]
    if len(head) >= indent:
        return [head, *(pad + line for line in body)]
    return [f"{head:<{indent}}{body[0]}", *(pad + line for line in body[1:])]
