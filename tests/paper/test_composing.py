"""What a preset was composed of is kept, and composed again when a file that takes part changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lpgnn_cli.config.compose import conf_dir, make_loader
from lpgnn_cli.config.hydra_internals import TellingLoader
from lpgnn_cli.paper import presets

WORDS = ("experiment=mutag_single",)


def forget() -> None:
    """What a process remembers of `conf/`."""
    presets._place.cache_clear()
    presets._content.cache_clear()


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of `conf/` to change, and a cache of its own."""
    copy = tmp_path / "conf"
    shutil.copytree(conf_dir(), copy)
    monkeypatch.setattr(presets, "conf_dir", lambda: copy)
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "cache"))
    yield copy
    forget()


@pytest.fixture
def composed(conf: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[str, bool]]:
    """The text of a preset as a new process would find it, and whether it had to be composed."""

    def compose() -> tuple[str, bool]:
        loader = TellingLoader(make_loader(config_path=str(conf)))
        used: list[bool] = []

        def ask() -> TellingLoader:
            used.append(True)
            return loader

        monkeypatch.setattr(presets, "_loader", ask)
        forget()
        return presets.composed_text(WORDS), bool(used)

    return compose


def test_another_file_changes_nothing(conf: Path, composed: Callable[[], tuple[str, bool]]) -> None:
    text, was_composed = composed()
    assert was_composed
    (conf / "recipe" / "lagrangian" / "nci1.yaml").write_text("epochs: 7\n")
    (conf / "experiment" / "new.yaml").write_text("epochs: 7\n")
    assert composed() == (text, False)


@pytest.mark.parametrize(
    "file",
    [
        "experiment/mutag_single.yaml",
        "recipe/_graphs.yaml",  # which the recipe of MUTAG is made of
        "variant/_recipe/none/mutag.yaml",  # optional, and not there before
    ],
)
def test_a_file_that_takes_part_is_noticed(
    conf: Path, composed: Callable[[], tuple[str, bool]], file: str
) -> None:
    before, _ = composed()
    path = conf / file
    path.parent.mkdir(parents=True, exist_ok=True)
    header = "" if path.is_file() else "# @package _global_\n"
    path.write_text(header + (path.read_text() if path.is_file() else "") + "\nseed: 77\n")
    after, was_composed = composed()
    assert was_composed
    assert "seed: 77" in after
    assert "seed: 77" not in before


def test_compositions_share_no_values() -> None:
    """A file is read once, and what one config sets in its copy is not seen by the next."""
    loader = TellingLoader(make_loader())
    first, _ = loader.compose("train", [*WORDS, "lr.theta=0.77"])
    second, files = loader.compose("train", WORDS)
    assert first.lr.theta == 0.77
    assert second.lr.theta != 0.77
    assert {"experiment/mutag_single", "recipe/lagrangian/mutag", "train"} <= set(files)


def test_what_is_composed_ahead_is_found_by_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By other processes, and to the letter what one composition after another gives."""
    wanted = [["experiment=karate"], ["experiment=karate", "variant=control"], ["no.such=1"]]
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "one by one"))
    expected = [presets.composed_text(words) for words in wanted[:2]]
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "ahead"))
    monkeypatch.setattr(presets, "MANY", 2)
    presets.compose_ahead(wanted)
    monkeypatch.setattr(presets, "_loader", lambda: pytest.fail("composed again"))
    assert [presets.composed_text(words) for words in wanted[:2]] == expected
    assert presets._kept(wanted[2]) is None
