"""docs/performance.md, from what the benchmarks have stored."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
STORE = REPOSITORY / "results" / "performance.json"
PAGE = REPOSITORY / "docs" / "performance.md"
# Above it is what people write; below, what the benchmarks have stored.
TABLES = "<!-- The rest is made by make bench. -->\n"


def store(topic: str, table: dict[str, Any]) -> None:
    """Keep one benchmark's figures, and write the page anew."""
    content = json.loads(STORE.read_text(encoding="utf-8")) if STORE.is_file() else {}
    content[topic] = table
    content["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    STORE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    written_by_hand, _, _ = PAGE.read_text(encoding="utf-8").partition(TABLES)
    PAGE.write_text(f"{written_by_hand}{TABLES}\n{render(content)}", encoding="utf-8")


def render(content: dict[str, Any]) -> str:
    sections = []
    for topic in sorted(set(content) - {"machine"}):
        table = content[topic]
        rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
        lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
        sections.append(f"## {topic}\n\n{table['note']}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(sections)
