"""`experiment=mutag_single variant=control`: one change applied to whatever was chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.model import LagrangianConfig
from lpgnn_cli.config.variants import variant_hint

SHORT = ("epochs=1", "tracking=none", "figures=false", "device=cpu")


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    return tmp_path / "runs"


def name_and_states(*words: str) -> tuple[str | None, str]:
    config = compose("train", words)
    assert isinstance(config.propagation, LagrangianConfig)
    return config.name, config.propagation.states


def test_a_variant_changes_the_preset_and_its_name() -> None:
    assert name_and_states("experiment=ptc_multi") == ("ptc_multi", "free")
    assert name_and_states("experiment=ptc_multi", "variant=none") == ("ptc_multi", "free")
    assert name_and_states("experiment=ptc_multi", "variant=control") == (
        "ptc_multi_control",
        "frozen",
    )


def test_presets_in_folders_have_names_without_a_slash() -> None:
    words = ("experiment=reach/cora", "variant=control")
    assert name_and_states(*words) == ("reach_cora_control", "frozen")


def test_what_stands_on_the_command_line_comes_after_the_variant() -> None:
    words = ("experiment=ptc_multi", "variant=control")
    assert name_and_states(*words, "name=mine") == ("mine", "frozen")
    assert name_and_states(*words, "propagation.states=free") == ("ptc_multi_control", "free")


def test_a_variant_needs_no_preset_and_a_grid_gives_no_name() -> None:
    assert name_and_states("dataset=ptc", "variant=control") == (None, "frozen")
    assert name_and_states("experiment=grid/paper_ptc", "variant=control") == (None, "frozen")


def test_a_run_of_a_variant_is_named_after_it(runs: Path) -> None:
    assert main(["train", "experiment=karate", "variant=control", *SHORT]) == 0
    (folder,) = (runs / "train").glob("*/*")
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    assert folder.name.endswith("-karate_control")
    assert (config["name"], config["propagation"]["states"]) == ("karate_control", "frozen")


def test_a_sweep_over_variants_runs_each(runs: Path) -> None:
    words = ["experiment=karate", "variant=none,control,oneshot", *SHORT, "hydra/launcher=basic"]
    assert main(["sweep", *words]) == 0
    configs = [
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in (runs / "sweep" / "jobs").glob("*/config.yaml")
    ]
    kinds = {(c["name"], c["propagation"]["states"], c["propagation"]["updates"]) for c in configs}
    assert kinds == {
        ("karate", "free", "ages"),
        ("karate_control", "frozen", "ages"),
        ("karate_oneshot", "free", "one_shot"),
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["experiment=mutag_single_control"],
            "no option mutag_single_control. Write experiment=mutag_single variant=control.",
        ),
        (["experiment=mutag_sngle_control"], "Add variant=control to a preset instead. Did you"),
        (["experiment=karate", "variant=contrl"], "variant has no option contrl. Did you mean con"),
        (
            ["experiment=mutag_gin", "variant=control"],
            "variant=control sets propagation.states, which the chosen propagation does not have",
        ),
    ],
)
def test_mistakes_get_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert main(["train", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_a_name_without_a_variant_gets_no_hint_about_variants() -> None:
    assert variant_hint("mutag_sngle", ["mutag_single"], ["control"]) == ""


def test_help_and_completion_know_the_variants(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "variant=oneshot", "--help"]) == 0
    assert "variant     control, letter, no_adjoint, none, [oneshot]\n" in capsys.readouterr().out
    monkeypatch.setenv("COMP_LINE", "lpgnn train variant=")
    assert main(["-sc", "query=bash"]) == 0
    assert capsys.readouterr().out.split() == [
        "variant=control",
        "variant=letter",
        "variant=no_adjoint",
        "variant=none",
        "variant=oneshot",
    ]
