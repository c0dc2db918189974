"""docs/performance.md is what its store makes of it, and storing loses nothing."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "performance_page.py"


@pytest.fixture
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("performance_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def elsewhere(page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(page, "STORE", tmp_path / "performance.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "performance.md")
    page.PAGE.write_text(f"# By hand\n\n{page.MARKER}\n## Old\n", encoding="utf-8")
    return page


def table(*rows: list[str]) -> dict[str, object]:
    return {"note": "A note.", "columns": ["dataset", "ms"], "rows": list(rows)}


def test_the_page_is_that_of_the_store(page: ModuleType) -> None:
    by_hand, marker, made = page.PAGE.read_text(encoding="utf-8").partition(page.MARKER)
    assert marker
    assert made == f"\n{page.render(page.read())}"
    sections = [line for line in (by_hand + made).splitlines() if line.startswith("## ")]
    assert len(sections) == len(set(sections))


def test_what_is_written_by_hand_stays_and_what_was_made_is_made_again(
    elsewhere: ModuleType,
) -> None:
    elsewhere.store("Epoch", table(["mutag", "5"]))
    elsewhere.store("Epoch", table(["mutag", "4"]))
    text = elsewhere.PAGE.read_text(encoding="utf-8")
    assert text.startswith(f"# By hand\n\n{elsewhere.MARKER}\n## Epoch\n")
    assert "| mutag | 4 |" in text
    assert "| mutag | 5 |" not in text
    assert "Old" not in text


def test_rows_of_other_cases_stay_and_say_at_which_commit_they_were_measured(
    elsewhere: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "commit", lambda: "aaaaaaa")
    elsewhere.store("Epoch", table(["mutag", "5"], ["nci1", "90"]), key=1)
    monkeypatch.setattr(elsewhere, "commit", lambda: "bbbbbbb")
    elsewhere.store("Epoch", table(["mutag", "4"]), key=1)
    stored = json.loads(elsewhere.STORE.read_text(encoding="utf-8"))["Epoch"]["rows"]
    assert [row["cells"] for row in stored] == [["nci1", "90"], ["mutag", "4"]]
    text = elsewhere.PAGE.read_text(encoding="utf-8")
    assert "Measured at commits aaaaaaa (nci1); bbbbbbb (mutag)." in text
