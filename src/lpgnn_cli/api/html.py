"""Tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table, which the notebook's own style dresses."""
    body = "".join(_row("td", row) for row in rows)
    head = _row("th", header)
    return f"<p><b>{escape(title)}</b></p><table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
