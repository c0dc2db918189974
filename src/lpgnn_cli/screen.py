"""Consoles that show text as it is: what is printed may be a name that anybody has chosen."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def plain_console(**options: Any) -> Console:
    """No markup in brackets, and no emoji between colons."""
    return Console(markup=False, emoji=False, **options)


def printable(text: str) -> str:
    """Without what would move the cursor or change the terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
