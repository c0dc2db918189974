"""What the tables lack: `lpgnn report plan` and `make paper`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import check_overrides, make_loader
from lpgnn_cli.paper.estimate import Estimate, Rates
from lpgnn_cli.paper.fair import MODELS
from lpgnn_cli.paper.nested import NestedSweep, read_sweeps
from lpgnn_cli.paper.plan import commands, missing_runs, missing_sweeps, plan
from lpgnn_cli.paper.presets import composed_settings, preset_settings
from lpgnn_cli.paper.reference import Preset, presets_by_name
from lpgnn_cli.paper.results import read_results

COMMITTED = Path(__file__).parents[2] / "results"


def fair_words(dataset: str, experiment: str) -> list[str]:
    return next(model for model in MODELS if model.words == (experiment,)).command(dataset)


def nested(words: list[str], seconds: float | None = None) -> NestedSweep:
    return NestedSweep(
        name="x",
        dataset="PROTEINS",
        model="gin",
        metric="accuracy",
        combinations=4,
        seeds=3,
        figures=(),
        inner=(),
        persistent=(),
        command=shlex.join(["lpgnn", "sweep", *words]),
        started=0.0,
        version="0",
        git_commit="",
        versions={},
        dataset_fingerprint="",
        split_fingerprint="",
        seconds=seconds,
    )


def test_all_cells_are_filled_by_what_is_there_and_what_is_planned() -> None:
    runs = read_results(COMMITTED)
    done = {run.preset for run in runs}
    planned = set(missing_runs(runs))
    assert not planned & done
    assert planned <= set(presets_by_name().values())
    assert Preset("clique_ages") not in planned


def test_a_run_that_is_gone_is_planned_at_the_pace_of_others_like_it() -> None:
    runs = read_results(COMMITTED)
    lost = next(run for run in runs if run.preset == Preset("clique_squared"))
    rest = [run for run in runs if run is not lost]
    assert lost.preset in missing_runs(rest)
    estimate = Rates(rest, []).run(preset_settings(lost.preset))
    assert estimate is not None
    assert not estimate.rough
    # No more than a guess: others stop earlier or later.
    took = sum(unit.seconds for unit in lost.units)
    assert took / 10 < estimate.seconds < 10 * took
    assert Rates([], []).run(preset_settings(lost.preset)) is None


def test_an_estimate_is_exact_for_what_took_its_time_before() -> None:
    """Folds, seeds, inner folds and combinations are counted as those of the sweep itself."""
    words = [*fair_words("proteins", "gin"), "protocol.inner_folds=3", "protocol.folds=4"]
    rates = Rates([], [nested(words, seconds=400.0)])
    assert rates.sweep(composed_settings(*words), 4) == Estimate(400.0, rough=False)
    # 4 folds x (8 combinations x 3 inner folds + 3 seeds) instead of (4 x 3 + 3).
    assert rates.sweep(composed_settings(*words), 8) == Estimate(720.0, rough=False)


def test_what_nothing_on_its_dataset_tells_of_goes_by_the_number_of_graphs() -> None:
    rates = Rates([], [nested(fair_words("proteins", "gin"), seconds=1113.0)])
    elsewhere = rates.sweep(composed_settings(*fair_words("mutag", "gin")), 4)
    assert elsewhere is not None
    assert elsewhere.rough
    assert elsewhere.seconds == pytest.approx(188.0)


def test_everything_that_is_planned_has_an_estimate() -> None:
    runs, sweeps = read_results(COMMITTED), read_sweeps(COMMITTED)
    planned = plan(runs, sweeps, Rates(runs, sweeps))
    assert len(planned) == len(missing_runs(runs)) + len(missing_sweeps(sweeps))
    assert all(one.estimate and one.estimate.seconds > 0 for one in planned)


def test_every_command_of_the_plan_is_one_that_sweeps_accept() -> None:
    """Each variant with the first of its presets, and the fair ones on one dataset."""
    loader = make_loader()
    presets = list({preset.variant: preset for preset in reversed(missing_runs([]))}.values())
    sweeps = [words for words in missing_sweeps([]) if "dataset=mutag" in words]
    for line in commands(presets, sweeps):
        program, command, *words = shlex.split(line)
        assert (program, command) == ("lpgnn", "sweep")
        check_overrides(loader, "sweep", words, multirun=True)


def test_a_nested_sweep_that_is_there_is_not_planned_again() -> None:
    words = fair_words("proteins", "gin")
    found = nested(words)
    assert words in missing_sweeps([])
    assert words not in missing_sweeps([found])
    assert len(missing_sweeps([found])) == len(missing_sweeps([])) - 1


def test_the_plan_is_shown_and_can_be_handed_to_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "plan", "--results", str(COMMITTED)]) == 0
    shown = capsys.readouterr().out
    assert "the tables lack" in shown
    assert "of computing" in shown.splitlines()[-1]
    assert "unknown" not in shown
    assert main(["report", "plan", "--results", str(COMMITTED), "--format", "commands"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("lpgnn sweep ") for line in lines)
    assert main(["report", "--format", "commands"]) == 2
    assert "goes with `lpgnn report plan`" in capsys.readouterr().err
