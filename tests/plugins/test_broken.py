"""Packages that do not hold what their entry points promise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.installed import load_plugins
from lpgnn_cli.config.model import AGGREGATORS, CONSTRAINTS

GOOD = """
from lpgnn_cli import plugins as lp

@lp.constraint("cube")
def cube(residual, config):
    return residual.abs() ** 3
"""
CASES = {
    "import notthere": "wrong does not load (ModuleNotFoundError: No module named 'notthere').",
    "raise SystemExit(3)": "wrong does not load (SystemExit: 3).",
    "def f(:": "wrong does not load (SyntaxError: ",
    f"{GOOD}\nlp.constraint('abs')(cube)": "g=abs exists already, from lpgnn itself.",
    f"{GOOD}\nlp.dataset('mutag')(cube)": "dataset=mutag exists already, from lpgnn itself.",
    f"{GOOD}\nlp.aggregator('mine')(cube)": "aggregator=mine is not a Transition.",
    f"{GOOD}\nlp.constraint('mine', int)(cube)": "g=mine needs settings that are a dataclass below",
    f"{GOOD}\nlp.constraint('my G')(cube)": "g=my G is no name for an option",
    f"{GOOD}\nlp.dataset('mine', lp.DatasetConfig)(cube)\n"
    "lp.dataset('other', lp.DatasetConfig)(cube)": "dataset=other needs a dataclass of its own",
}

pytestmark = pytest.mark.usefixtures("clean_registry")


def install(folder: Path, package: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lpgnn.plugins]\n{package} = {package}\n")
    (folder / f"{package}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, package, raising=False)


@pytest.mark.parametrize(("code", "problem"), CASES.items())
def test_a_broken_plugin_brings_nothing(
    code: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "wrong", code, monkeypatch)
    (plugin,) = load_plugins()
    assert plugin.sentence.startswith(f"the plug-in package wrong 1.0 is left out: {problem}")
    assert plugin.options == ()
    assert "cube" not in CONSTRAINTS.by_name, "what it had added before is gone as well"


def test_the_rest_goes_on_and_one_line_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, "wrong", "import notthere", monkeypatch)
    assert main(["--help"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["train", "--cfg", "job"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("lpgnn: the plug-in package wrong 1.0 is left out: ")
    assert said.err.count("\n") == 1
    assert "name: MUTAG" in said.out


def test_the_second_of_two_plugins_with_one_name_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, "first", GOOD, monkeypatch)
    install(tmp_path, "second", GOOD, monkeypatch)
    assert compose("train", ["g=cube"]).g.name == "cube"
    problem = "g=cube exists already, from first 1.0."
    said = capsys.readouterr().err
    assert said == f"lpgnn: the plug-in package second 1.0 is left out: {problem}\n"
    assert [plugin.options for plugin in load_plugins()] == [("g=cube",), ()]


def test_a_worker_process_finds_what_has_no_settings_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lpgnn_cli.config.model import ConstraintConfig

    install(tmp_path, "late", GOOD, monkeypatch)
    found = CONSTRAINTS.of(ConstraintConfig(name="cube"))  # nothing has composed anything here
    assert found.origin == "late 1.0"
    assert "cube" not in AGGREGATORS.by_name
