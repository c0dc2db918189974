"""docs/performance.md, from what the benchmarks have stored."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
STORE = REPOSITORY / "results" / "performance.json"
PAGE = REPOSITORY / "docs" / "performance.md"
HEAD = """\
# Performance

Made by `make bench`; the figures behind it are in `results/performance.json`. Ratios are those of
one run, in which all that is compared took turns; times are those of one machine.
"""


def store(topic: str, table: dict[str, Any]) -> None:
    """Keep one benchmark's figures, and write the page anew."""
    content = json.loads(STORE.read_text(encoding="utf-8")) if STORE.is_file() else {}
    content[topic] = table
    content["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    STORE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(render(content), encoding="utf-8")


def render(content: dict[str, Any]) -> str:
    sections = [HEAD]
    for topic in sorted(set(content) - {"machine"}):
        table = content[topic]
        rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
        lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
        sections.append(f"## {topic}\n\n{table['note']}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(sections)
