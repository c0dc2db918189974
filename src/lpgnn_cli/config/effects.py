"""Which settings matter for results: each says so itself, in `setting(affects_results=...)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from lpgnn_cli.config.restore import RETIRED
from lpgnn_cli.config.root import SweepConfig, schemas

V = TypeVar("V")


def essential_values(config: object) -> dict[str, Any]:
    """The settings of a typed config that results depend on, as plain nested values."""
    assert is_dataclass(config)
    found: dict[str, Any] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.metadata.get("affects_results", True) and not _is_usual(field.name, value):
            found[field.name] = essential_values(value) if is_dataclass(value) else value
    return found


def essence(flat: Mapping[str, V]) -> dict[str, V]:
    """The same of a flat config: `{"lr.theta": ..., "dataset.name": ...}`."""
    without = RETIRED | presentation()
    return {
        key: value
        for key, value in flat.items()
        if not is_within(key, without) and not _is_usual(key, value)
    }


def essential_words(words: Iterable[str]) -> list[str]:
    """The words of a command that results depend on: with these it can be repeated elsewhere."""
    without = presentation() | {"hydra"}

    def counts(word: str) -> bool:
        key, is_setting, value = word.partition("=")
        # `hydra` of `hydra/launcher`, `optim` of `+optim`.
        bare = key.lstrip("+~").partition("/")[0]
        return not is_setting or not (is_within(bare, without) or _is_usual(key, value))

    return [word for word in words if counts(word)]


def _is_usual(key: str, value: object) -> bool:
    """One thread, said or unsaid: runs of before the number of threads was one of the settings that
    count are the same."""
    return key == "threads" and str(value) in ("None", "null", "1")


def presentation() -> set[str]:
    """The settings, and groups of them, that only say how a run is shown, kept and computed."""
    return set(_unaffecting(SweepConfig, ""))


def is_within(key: str, groups: Iterable[str]) -> bool:
    """Whether a key is one of these, or inside one."""
    return any(key == group or key.startswith(f"{group}.") for group in groups)


def _unaffecting(schema: type, prefix: str) -> Iterator[str]:
    types, of_groups = get_type_hints(schema), schemas()
    for field in fields(schema):
        key = f"{prefix}{field.name}"
        if not field.metadata.get("affects_results", True):
            yield key
            continue
        inside = of_groups.get(key, {"": types[field.name]}).values()
        for nested in inside:
            if isinstance(nested, type) and is_dataclass(nested):
                yield from _unaffecting(nested, f"{key}.")
