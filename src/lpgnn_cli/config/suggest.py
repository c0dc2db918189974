"""Nearest valid names, for the sentences that answer a typo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Up to three of `names`, the most similar first; upper and lower case do not matter."""
    by_lower = {candidate.lower(): candidate for candidate in names}
    return [by_lower[match] for match in get_close_matches(name.lower(), by_lower, n=3)]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`Did you mean a or b?`, or nothing where no name is near."""
    near = nearest(name, names)
    return f"Did you mean {alternatives(near)}?" if near else ""


def alternatives(names: Sequence[str], word: str = "or") -> str:
    """`a`, `a or b`, `a, b or c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def no_such_setting(key: str, known: Iterable[str]) -> str:
    """A key that does not exist, and those that were probably meant."""
    keys = list(known)
    leaf = key.rpartition(".")[2]
    near = (
        [name for name in keys if name.rpartition(".")[2] == leaf][:3]
        or nearest(key, [name for name in keys if name.count(".") == key.count(".")])
        or nearest(key, keys)
    )
    hint = f"Did you mean {alternatives(near)}?" if near else "`--help` lists all settings."
    return f"there is no setting {key}. {hint}"
