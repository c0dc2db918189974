"""What the tables lack: `lpgnn report plan` and `make paper`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import check_overrides, make_loader
from lpgnn_cli.paper.nested import NestedSweep
from lpgnn_cli.paper.plan import commands, fair_words, missing_runs, missing_sweeps
from lpgnn_cli.paper.reference import Preset, presets_by_name
from lpgnn_cli.paper.results import read_results

COMMITTED = Path(__file__).parents[2] / "results"


def test_all_cells_are_filled_by_what_is_there_and_what_is_planned() -> None:
    runs = read_results(COMMITTED)
    done = {run.preset for run in runs}
    planned = {one.preset for one in missing_runs(runs)}
    assert not planned & done
    assert planned <= set(presets_by_name().values())
    assert not {one.preset for one in missing_runs(runs)} & {Preset("clique_ages")}


def test_a_run_that_is_gone_is_planned_at_the_pace_of_others_like_it() -> None:
    runs = read_results(COMMITTED)
    lost = next(run for run in runs if run.preset == Preset("clique_squared"))
    rest = [run for run in runs if run is not lost]
    (planned,) = [one for one in missing_runs(rest) if one.preset == lost.preset]
    assert planned.seconds is not None
    # No more than a guess: others stop earlier or later.
    took = sum(unit.seconds for unit in lost.units)
    assert took / 10 < planned.seconds < 10 * took
    (unknown,) = [one for one in missing_runs([]) if one.preset == lost.preset]
    assert unknown.seconds is None


def test_every_command_of_the_plan_is_one_that_sweeps_accept() -> None:
    """Each variant with the first of its presets, and the fair ones on one dataset."""
    loader = make_loader()
    planned = list({one.preset.variant: one for one in reversed(missing_runs([]))}.values())
    sweeps = [words for words in missing_sweeps([]) if "dataset=mutag" in words]
    for line in commands(planned, sweeps):
        program, command, *words = shlex.split(line)
        assert (program, command) == ("lpgnn", "sweep")
        check_overrides(loader, "sweep", words, multirun=True)


def test_a_nested_sweep_that_is_there_is_not_planned_again() -> None:
    words = fair_words("proteins", "gin")
    found = NestedSweep(
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
    )
    assert words in missing_sweeps([])
    assert words not in missing_sweeps([found])
    assert len(missing_sweeps([found])) == len(missing_sweeps([])) - 1


def test_the_plan_is_shown_and_can_be_handed_to_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "plan", "--results", str(COMMITTED)]) == 0
    shown = capsys.readouterr().out
    assert "the tables lack" in shown
    assert main(["report", "plan", "--results", str(COMMITTED), "--format", "commands"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("lpgnn sweep ") for line in lines)
    assert main(["report", "--format", "commands"]) == 2
    assert "goes with `lpgnn report plan`" in capsys.readouterr().err
