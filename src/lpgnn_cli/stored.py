"""Stored files as data: whatever they hold, reading gives plain values or one sentence.

A run folder may come from somebody else. Nothing in it is executed, interpolated or believed:
records become the dataclasses that they claim to be only if every value has its type.
"""

from __future__ import annotations

import json
import types
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from lpgnn_cli.errors import UserError

# More than any record or config of ours has.
MAX_BYTES = 64 << 20
MAX_DEPTH = 50

# The parser in C, where PyYAML has it, is ten times as fast.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

T = TypeVar("T")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        value = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: it is not JSON ({error}).") from error
    return _mapping(value, path)


def read_json_list(path: Path) -> list[Any]:
    """The list in a JSON file."""
    try:
        value = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(value, list):
        raise UserError(f"{path} is damaged: it holds no list.")
    return value


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    return parse_yaml(_read_text(path), path)


def parse_yaml(text: str, origin: Path | str) -> dict[str, Any]:
    """The mapping in a text; aliases, of which a few lines make gigabytes, are refused."""
    try:
        _check_events(text, origin)
        value = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError, TypeError) as error:
        if isinstance(error, UserError):
            raise
        reason = " ".join(str(error).split())
        raise UserError(f"{origin} is damaged: it is not plain YAML ({reason}).") from error
    return _mapping({} if value is None else value, origin)


def refuse_interpolations(value: Any, origin: str, key: str = "") -> None:
    """What is stored was resolved before it was stored: `${...}` in it is an attempt at ours."""
    if isinstance(value, str):
        if "${" in value:
            raise UserError(
                f"{origin} is refused: its {key or 'value'} holds {value[:60]!r}, and nothing in a "
                "stored config is interpolated."
            )
    elif isinstance(value, dict):
        for name, entry in value.items():
            refuse_interpolations(name, origin, f"{key}.{name}".lstrip("."))
            refuse_interpolations(entry, origin, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for position, entry in enumerate(value):
            refuse_interpolations(entry, origin, f"{key}[{position}]")


def record_from(kind: type[T], raw: Any, origin: Path | str) -> T:
    """A dataclass from the plain values that it was stored as."""
    try:
        value: T = _dataclass(kind, raw)
    except UserError as error:
        raise UserError(f"{origin} is damaged: {error}") from error
    return value


def _read_text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is refused: it is not a file.")
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path} is larger than anything that lpgnn writes there.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is damaged: it is not text.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def _mapping(value: Any, origin: Path | str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{origin} is damaged: it holds no settings by name.")
    return {str(key): entry for key, entry in value.items()}


def _check_events(text: str, origin: Path | str) -> None:
    """Before anything is built: the parser in C would run out of stack in a text that is deep."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            raise UserError(f"{origin} is refused: it has YAML aliases, which lpgnn never writes.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise UserError(f"{origin} is refused: it is nested deeper than any config.")


def _dataclass(kind: type[Any], raw: Any) -> Any:
    if not isinstance(raw, dict):
        raise UserError(f"it has no {kind.__name__} by names.")
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}
    if unknown := sorted(map(str, raw.keys() - known.keys())):
        raise UserError(f"{kind.__name__} has no {unknown[0][:60]}.")
    values = {}
    for name, field in known.items():
        if name in raw:
            values[name] = _value(hints[name], raw[name], name)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise UserError(f"{kind.__name__} lacks {name}.")
    return kind(**values)


def _value(hint: Any, raw: Any, name: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return raw
    if origin in (types.UnionType, Union):
        if raw is None and type(None) in arguments:
            return None
        rest = [argument for argument in arguments if argument is not type(None)]
        return _value(rest[0], raw, name)
    if origin in (list, tuple) and isinstance(raw, list):
        return origin(_value(arguments[0], entry, name) for entry in raw)
    if origin is dict and isinstance(raw, dict):
        return {str(key): _value(arguments[1], entry, name) for key, entry in raw.items()}
    if isinstance(hint, type):
        if is_dataclass(hint):
            return _dataclass(hint, raw)
        if issubclass(hint, Enum) and raw in {member.value for member in hint}:
            return hint(raw)
        if hint is float and isinstance(raw, int | float) and not isinstance(raw, bool):
            return float(raw)
        if type(raw) is hint:
            return raw
    raise UserError(f"{name} cannot be {str(raw)[:60]!r}.")
