"""docs/performance.md from what the benchmarks stored: `python benchmarks/performance_page.py`.

What is above the marker is written by hand; the rest is made from results/performance.json.
"""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
STORE = REPOSITORY / "results" / "performance.json"
PAGE = REPOSITORY / "docs" / "performance.md"
MARKER = "<!-- The rest is made by make bench. -->\n"


def store(topic: str, table: dict[str, Any], key: int = 0) -> None:
    """Keep one benchmark's figures, and write the page anew.

    With a key, rows that were stored before stay, but for those that begin with the same `key`
    cells as a new one: a benchmark can store row by row, and measure some of its cases again.
    """
    content = read()
    here = commit()
    rows = [{"cells": cells, "commit": here} for cells in table["rows"]]
    if key and topic in content:
        new = [row["cells"][:key] for row in rows]
        kept = [row for row in content[topic]["rows"] if row["cells"][:key] not in new]
        rows = kept + rows
    content[topic] = {**table, "rows": rows}
    content["machine"] = f"{platform.machine()}, Python {platform.python_version()}"
    _write(STORE, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    write_page()


def read() -> dict[str, Any]:
    content: dict[str, Any] = {}
    if STORE.is_file():
        content = json.loads(STORE.read_text(encoding="utf-8"))
    return content


def write_page() -> None:
    by_hand, marker, _ = PAGE.read_text(encoding="utf-8").partition(MARKER)
    _write(PAGE, f"{by_hand}{marker or MARKER}\n{render(read())}")


def render(content: dict[str, Any]) -> str:
    sections = []
    for topic in sorted(set(content) - {"machine"}):
        table = content[topic]
        header = [table["columns"], ["---"] * len(table["columns"])]
        cells = [row["cells"] for row in table["rows"]]
        lines = [f"| {' | '.join(map(str, row))} |" for row in [*header, *cells]]
        text = [f"## {topic}", table["note"], "\n".join(lines), _measured_at(table["rows"])]
        sections.append("\n\n".join(text) + "\n")
    return "\n".join(sections)


def _measured_at(rows: list[dict[str, Any]]) -> str:
    """The commit, and for which rows where there are several."""
    commits = list(dict.fromkeys(row["commit"] for row in rows))
    if len(commits) == 1:
        return f"Measured at commit {commits[0]}."
    parts = []
    for known in commits:
        names = dict.fromkeys(str(row["cells"][0]) for row in rows if row["commit"] == known)
        parts.append(f"{known} ({', '.join(names)})")
    return f"Measured at commits {'; '.join(parts)}."


def commit(checkout: Path = REPOSITORY) -> str:
    """Of a working tree, with a + where its code has changes of its own."""
    known = _git(checkout, "rev-parse", "--short=7", "HEAD")
    changes = _git(checkout, "status", "--porcelain", "--", "src", "conf", "benchmarks")
    return f"{known}+" if changes else known or "unknown"


def _git(checkout: Path, *words: str) -> str:
    command = ["git", *words]
    said = subprocess.run(command, capture_output=True, text=True, cwd=checkout, check=False)
    return said.stdout.strip()


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    half = path.with_suffix(f"{path.suffix}.part")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


if __name__ == "__main__":
    write_page()
