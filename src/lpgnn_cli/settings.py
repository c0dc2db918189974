"""The settings that a run was started with, as its config.yaml has them: flat names and values.

Values are written as on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lpgnn_cli.stored import parse_yaml, read_yaml


def read_flat_config(path: Path) -> dict[str, str]:
    """`{"lr.theta": "0.01", "state": "[16]", ...}`; empty where there is no config yet."""
    if not path.is_file():
        return {}
    return dict(_flatten(read_yaml(path), ""))


def flat_config(text: str) -> dict[str, str]:
    """The same from the text of a config.yaml."""
    return dict(_flatten(parse_yaml(text, "the config"), ""))


def differing(configs: Sequence[Mapping[str, str]]) -> dict[str, list[str | None]]:
    """The settings that some of these configs have different values of, one value per config.

    None where a config has no such setting: that alone is no difference, since the name of the
    option that brings it is one already.
    """
    keys = dict.fromkeys(key for config in configs for key in config)
    values = {key: [config.get(key) for config in configs] for key in keys}
    return {key: own for key, own in values.items() if len(set(own) - {None}) > 1}


def uses_g(settings: Mapping[str, str]) -> bool:
    """Whether the propagation relaxes its constraints by G, as the gradient rule does.

    Every config has a G; where it is not used, it says nothing about the run.
    """
    if "propagation.multiplier" not in settings:
        return False
    free = settings.get("propagation.states", "free") == "free"
    return free and settings.get("propagation.updates", "gradient") == "gradient"


def _flatten(node: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(_text(entry) for entry in value)}]"
    return str(value)
