"""Names that become parts of paths: every one is checked here, wherever it comes from."""

from __future__ import annotations

import re

from lpgnn_cli.errors import UserError

LONGEST = 200


def checked_name(what: str, name: object) -> str:
    """`name`, if it can name one file or folder in another one, and never leads out of that."""
    if not _is_safe(name):
        shown = ascii(name).strip("'")[:LONGEST]
        raise UserError(f"{what}={shown} cannot name a folder: use letters, digits, - and _.")
    return str(name)


def as_name(text: str) -> str:
    """A name that resembles the text."""
    return re.sub(r"[^\w.,=+-]+", "-", text).strip(".-")[: LONGEST // 4] or "unnamed"


def _is_safe(name: object) -> bool:
    return (
        isinstance(name, str)
        and name.isprintable()
        and not set(name) & set("/\\$")
        and not name.startswith(".")
        and 0 < len(name.encode(errors="replace")) <= LONGEST
    )
