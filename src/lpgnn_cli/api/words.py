"""Settings in Python as the words of the command line: `lr={"theta": 1e-3}` is `lr.theta=0.001`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_origin, get_type_hints

from hydra.core.override_parser.types import Quote, QuotedString

from lpgnn_cli.config.root import TrainConfig, schemas
from lpgnn_cli.errors import UserError

# Text that Hydra reads as itself.
PLAIN = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
# Text that it would read as something else.
KEYWORDS = ("null", "true", "false", "inf", "nan")

Settings = Mapping[str, Any]


def flatten(settings: Settings) -> dict[str, Any]:
    """Dotted names for what is nested."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten({f"{key}.{inner}": v for inner, v in value.items()})
        else:
            flat[key] = value
    return flat


def train_words(flat: Settings) -> list[str]:
    """One word per setting, each with one value."""
    return [_word(key, _literal(key, value)) for key, value in flat.items()]


def sweep_words(flat: Settings) -> list[str]:
    """As for training, but several values are an axis.

    Which lists are axes follows from the setting: for one that is itself a list (`state`), a list
    of lists is, and for any other a list.
    """
    lists = set(list_settings())
    return [_word(key, _swept(key, value, key in lists)) for key, value in flat.items()]


def list_settings() -> Iterator[str]:
    """The settings whose value is a list."""
    yield from _lists(TrainConfig, "")
    for group, known in schemas().items():
        for schema in known.values():
            yield from _lists(schema, f"{group}.")


def _lists(schema: type, prefix: str) -> Iterator[str]:
    assert is_dataclass(schema)
    types = get_type_hints(schema)
    for field in fields(schema):
        if get_origin(types[field.name]) is list:
            yield f"{prefix}{field.name}"


def _swept(key: str, value: Any, is_list: bool) -> str:
    values = _as_list(value)
    if values is None or (is_list and not all(_as_list(v) is not None for v in values)):
        return _literal(key, value)
    if not values:
        if is_list:
            return "[]"
        raise UserError(f"{key} has no values to sweep over.")
    return ",".join(_literal(key, v) for v in values)


def _word(key: str, value: str) -> str:
    """`~key` takes something out, which has no value."""
    return key if key.startswith("~") and value == "null" else f"{key}={value}"


def _literal(key: str, value: Any) -> str:
    """A value as Hydra reads it back."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str | os.PathLike):
        return _text(os.fspath(value))
    entries = _as_list(value)
    if entries is not None:
        return f"[{','.join(_literal(key, entry) for entry in entries)}]"
    if hasattr(value, "item"):  # a number of numpy or torch
        return _literal(key, value.item())
    raise UserError(
        f"{key} cannot be a {type(value).__name__}: give a number, text, a list or None."
    )


def _as_list(value: Any) -> list[Any] | None:
    """Lists, tuples, ranges and vectors; None for anything else."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    if getattr(value, "ndim", 0) and hasattr(value, "tolist"):  # of numpy or torch
        return list(value.tolist())
    return None


def _text(text: str | bytes) -> str:
    text = os.fsdecode(text)
    if PLAIN.fullmatch(text) and text.lower() not in KEYWORDS:
        return text
    return QuotedString(text, Quote.single).with_quotes()
