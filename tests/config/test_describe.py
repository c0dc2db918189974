"""Help comes from the comments in `conf/`, so every setting must have one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from lpgnn_cli.config.compose import compose, conf_dir, load, make_loader
from lpgnn_cli.config.describe import describe, read_comments
from lpgnn_cli.config.explain import groups, options
from lpgnn_cli.config.root import schemas
from lpgnn_cli.errors import UserError

# Recipes and experiments set what is described elsewhere.
FILES = sorted(
    path
    for path in conf_dir().rglob("*.yaml")
    if path.relative_to(conf_dir()).parts[0] not in ("recipe", "experiment")
)
# What an option is, rather than what can be set in it.
IDENTITY = {"name", "pattern"}


def test_a_comment_belongs_to_the_key_below_and_those_that_follow_at_once() -> None:
    found = read_comments(
        "# @package _global_\n"
        "# The title,\n"
        "# in two lines.\n"
        "defaults:\n"
        "  # not a setting\n"
        "  - a: b\n"
        "\n"
        "name: x\n"
        "# First.\n"
        "one: 1\n"
        "# Both\n"
        "# of them.\n"
        "two: 2\n"
        "three: 3\n"
        "\n"
        "four: 4\n"
        "nested:\n"
        "  # Inside.\n"
        "  five: 5\n"
    )
    assert found.title == "The title, in two lines."
    assert found.settings == {
        "one": "First.",
        "two": "Both of them.",
        "three": "Both of them.",
        "nested.five": "Inside.",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(conf_dir())))
def test_every_file_says_what_it_is(path: Path) -> None:
    assert read_comments(path.read_text()).title


def keys_of(config: object, prefix: str = "") -> list[str]:
    found = []
    assert is_dataclass(config)
    for field in fields(config):
        value, key = getattr(config, field.name), f"{prefix}{field.name}"
        found += keys_of(value, f"{key}.") if is_dataclass(value) else [key]
    return found


LOADER = make_loader()
SCHEMAS = schemas()
CHOICES = [
    (group, option)
    for group in groups(LOADER)
    if group in SCHEMAS
    for option in options(LOADER, group)
]


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_every_option_composes_in_range_and_help_describes_its_settings(
    group: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    needs = {"tu": ["dataset.name=BZR"], "graphs": ["dataset.path=mine.npz"]}
    overrides = [f"{group}={option}", *needs.get(option, [])]
    config = compose("train", overrides)
    assert type(getattr(config, group)) in SCHEMAS[group].values()
    text = describe(LOADER, "train", overrides, "train", "train")
    described = [line.strip().split("=")[0] for line in text.splitlines() if "=" in line]
    wanted = [
        key for key in keys_of(config) if "." not in key or key.split(".")[-1] not in IDENTITY
    ]
    assert [key for key in wanted if key not in described] == []


def test_help_lists_the_options_and_no_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = describe(LOADER, "train", ["g=abs_eps", "layers=4"], "train", "train")
    assert "abs, [abs_eps], auto, lin, lin_eps, norm1_eps, squared" in text
    assert "_plain" not in text
    assert "layers=4" in text
    assert "g.eps=0.01" in text
    assert max(map(len, text.splitlines())) <= 100


def test_what_datasets_choose_for_training_is_no_setting_of_eval() -> None:
    shown = describe(LOADER, "eval", ["dataset=clique"], "eval", "score")
    assert "dataset.graphs=" in shown
    assert "protocol" not in shown.split("Settings")[0]
    assert "protocol." not in shown
    assert "aggregator" not in shown
    for word in ("protocol=kfold", "aggregator.hidden=[3]", "aggregator=gin"):
        with pytest.raises(UserError, match=f"eval has no setting {word.split('=')[0]}"):
            load(LOADER, "eval", ["run=x", word])
