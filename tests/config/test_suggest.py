"""Nearest names."""

from __future__ import annotations

import pytest

from lpgnn_cli.config.suggest import alternatives, did_you_mean, nearest, no_such_setting


def test_nearest_ignores_case_and_puts_the_most_similar_first() -> None:
    assert nearest("MUTG", ["imdb_m", "mutag", "karate"]) == ["mutag"]
    assert nearest("abs_epss", ["abs", "abs_eps", "lin_eps"])[0] == "abs_eps"
    assert nearest("qqq", ["abs"]) == []


def test_nothing_near_says_nothing() -> None:
    assert did_you_mean("qqq", ["abs"]) == ""


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), (list("abc"), "a, b or c")]
)
def test_alternatives(names: list[str], text: str) -> None:
    assert alternatives(names) == text


def test_a_bare_name_finds_the_full_key() -> None:
    assert no_such_setting("theta", ["lr.theta", "layers"]).endswith("Did you mean lr.theta?")
    assert "`--help` lists" in no_such_setting("zzz", ["lr.theta"])
