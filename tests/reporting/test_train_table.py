from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.reporting.train_table import closing_table
from lpgnn_cli.runfolder import Rule, RunFolder

from .conftest import MakeRun

SETTLED = {"converged": 1.0, "steps": 40.0}


def closing(run: RunFolder, elapsed: float = 75.0) -> str:
    summarise(run)
    file = io.StringIO()
    closing_table(run, Console(file=file), elapsed)
    return file.getvalue()


def line(text: str, label: str) -> str:
    return next(row for row in text.splitlines() if row.startswith(label))


def two_folds(make_run: MakeRun, **kwargs: Any) -> RunFolder:
    return make_run(
        [
            {
                "train/accuracy": [0.8, 1.0],
                "test/accuracy": [0.9, 0.7],
                "test/violation_mean": [0.1, 0.003],
                "test/violation_max": [0.2, 0.04],
            },
            {
                "train/accuracy": [0.8, 0.9],
                "test/accuracy": [0.8, 0.7],
                "test/violation_mean": [0.1, 0.001],
                "test/violation_max": [0.2, 0.02],
            },
        ],
        **kwargs,
    )


def test_optimistic_and_honest_accuracies_stand_side_by_side(make_run: MakeRun) -> None:
    text = closing(two_folds(make_run))
    assert line(text, "last epoch (honest)").endswith("70.0 ± 0.0 %  from zero")
    best = line(text, "best epoch (optimistic)")
    assert best.endswith("85.0 ± 5.0 %  at epoch 1, chosen on the test part")
    assert "85.0 ± 5.0 %  each unit at its" in line(text, "per-fold maximum (optimistic)")
    assert "persistent" not in text
    cells = " ".join(line(text, "fold-00").split())
    assert cells == "fold-00 70.0 % 90.0 % 100.0 % 3.0e-3 0.04 2 10 s finished"
    assert "2.0e-3 test" in line(text, "violation")
    assert "1:15" in line(text, "time")
    assert text.startswith("MUTAG, lagrangian, sum, G = squared, K = 3\n")


def test_validation_rule_names_itself_and_shows_the_selected_epoch(make_run: MakeRun) -> None:
    text = closing(two_folds(make_run, rule=Rule.VALIDATION_LOSS, selected=[1, 1]))
    assert "85.0 ± 5.0 %" in line(text, "validation loss (honest)")
    assert line(text, "unit").split()[1] == "accuracy"


def test_where_the_run_is_and_what_to_do_next(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = two_folds(make_run)
    monkeypatch.chdir(run.path.parent)
    text = closing(run)
    assert line(text, "run").split() == ["run", run.path.name]
    assert line(text, "evaluate").endswith(f"lpgnn eval run={run.path.name}")
    assert line(text, "dashboard").endswith("lpgnn ui")
    monkeypatch.chdir("/")
    text = closing(run)
    assert str(run.path).lstrip("/") in line(text, "run")


def test_no_dashboard_without_tracking(make_run: MakeRun) -> None:
    text = closing(two_folds(make_run, config={"tracking": {"name": "none"}}))
    assert "lpgnn ui" not in text


def test_a_path_with_spaces_can_be_pasted(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = two_folds(make_run)
    spaced = run.path.with_name("a run")
    run.path.rename(spaced)
    run.path = spaced
    monkeypatch.chdir(spaced.parent)
    assert line(closing(run), "evaluate").endswith("""lpgnn eval 'run="a run"'""")


def test_states_of_training_that_agree_are_said_in_one_line(make_run: MakeRun) -> None:
    inference = [{**SETTLED, "gain": 0.7, "path_free": 1.0}] * 2
    text = closing(two_folds(make_run, persistent=[{"accuracy": 0.71}] * 2, inference=inference))
    assert "71.0 ± 0.0 %" in line(text, "persistent states")
    assert "100 % of the graphs settled in 40 steps from zero" in line(text, "test phase")
    assert "warning" not in text
    assert "rescore_mb" not in text


def test_states_of_training_that_promise_too_much_are_warned_of(make_run: MakeRun) -> None:
    text = closing(
        two_folds(
            make_run,
            from_zero=[{"accuracy": 0.5}, {"accuracy": 0.6}],
            persistent=[{"accuracy": 0.7}] * 2,
            rescored=[(1, {"accuracy": 0.6}), (1, {"accuracy": 0.8})],
        )
    )
    assert "55.0 ± 5.0 %  from zero" in line(text, "last epoch (honest)")
    assert line(text, "best epoch (optimistic)").endswith("persistent states")
    assert "70.0 ± 10.0 %  at epoch 1, scored again" in line(text, "from zero (optimistic)")
    assert "from zero the accuracy is 15.0 percentage points lower than at the states of" in text
    assert " ".join(line(text, "fold-00").split()).startswith("fold-00 50.0 % 70.0 % 90.0 %")


def test_a_best_epoch_that_was_not_scored_from_zero_says_why(make_run: MakeRun) -> None:
    text = closing(two_folds(make_run, persistent=[{"accuracy": 0.7}] * 2))
    assert "were not kept (rescore_mb)" in line(text, "from zero (optimistic)")


def test_repelling_fixed_points_are_warned_of(make_run: MakeRun) -> None:
    gains = [{**SETTLED, "gain": 2.2}, {**SETTLED, "gain": 0.7}]
    text = closing(two_folds(make_run, inference=gains))
    assert "fixed points repel in 1 of 2 units: the Jacobian's gain reaches 2.20" in text


def test_a_gain_says_whether_its_bound_is_proved(make_run: MakeRun) -> None:
    gains = [{**SETTLED, "gain": 0.5, "gain_largest": 0.9, "equal_answers": 0.995}] * 2
    bound = {"propagation": {"gain": 0.95}}
    text = closing(two_folds(make_run, inference=gains, config=bound))
    measured = "0.50 on average, 0.90 for the graph with most"
    assert line(text, "gain").endswith(f"{measured}; not proved to stay below 0.95")
    assert "99.5 % of the answers as at the states of training" in line(text, "test phase")
    proved = [{**gain, "path_free": 1.0} for gain in gains]
    text = closing(two_folds(make_run, inference=proved, config=bound))
    assert line(text, "gain").endswith("; proved to stay below 0.95")
    unbounded = closing(two_folds(make_run, inference=gains))
    assert line(unbounded, "gain").endswith(measured)


def test_one_graph_that_repels_is_enough_for_a_warning(make_run: MakeRun) -> None:
    gains = [{**SETTLED, "gain": 0.6, "gain_largest": 1.3}] * 2
    assert "the Jacobian's gain reaches 1.30" in closing(two_folds(make_run, inference=gains))


def test_units_that_did_not_finish_are_named(make_run: MakeRun) -> None:
    reason = "the Lagrangian\nis \x1b[31mnot finite"
    text = closing(two_folds(make_run, states=["finished", "diverged"], reason=reason))
    assert "1 of 2 units did not finish: the means are over the other 1." in text
    assert "fold-01 diverged: the Lagrangian is [31mnot finite" in text
    assert line(text, "fold-01").endswith("diverged")


def test_an_interrupted_run_says_how_to_go_on(make_run: MakeRun) -> None:
    text = closing(two_folds(make_run, states=["interrupted"] * 2))
    assert "lpgnn train resume=" in line(text, "continue")
    assert "there is no result" in text
    assert "lpgnn eval" not in text


def test_units_that_never_started_are_told_from_interrupted_ones(make_run: MakeRun) -> None:
    run = two_folds(make_run, states=["diverged", "finished"])
    for name in ("result.json", "metrics.csv"):
        (run.unit("fold-01") / name).unlink()
    text = closing(run)
    assert line(text, "fold-01").endswith("not run")
    assert "resume" not in text


def test_many_units_of_several_seeds_are_condensed_by_seed(make_run: MakeRun) -> None:
    curves = [{"test/accuracy": [0.5 + 0.1 * (i // 10)]} for i in range(30)]
    text = closing(make_run(curves, seeds=3))
    assert [line(text, f"seed {s}").split()[2] for s in range(3)] == ["50.0", "60.0", "70.0"]
    assert "fold-" not in text


def test_many_folds_show_the_first_and_the_last(make_run: MakeRun) -> None:
    text = closing(make_run([{"test/accuracy": [0.5]} for _ in range(25)]))
    assert "(15 more)" in text
    assert "fold-04" in text
    assert "fold-05" not in text
    assert "fold-20" in text


def test_no_control_characters_in_a_pipe_even_under_force_color(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = closing(two_folds(make_run, states=["finished", "failed"], reason="\x1b[31mred\x07"))
    assert all(c.isprintable() or c == "\n" for c in text)


def test_ascii_output_has_no_other_characters(make_run: MakeRun) -> None:
    run = two_folds(make_run, config={"dataset": {"name": "Été"}})
    summarise(run)
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    closing_table(run, Console(file=file), 1.0)
    file.flush()
    text = raw.getvalue().decode("ascii")
    assert "85.0 +/- 5.0 %" in text
    assert text.startswith("?t?")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def draw_on_terminal(run: RunFolder, width: int) -> str:
    summarise(run)
    file = Terminal()
    closing_table(run, Console(file=file, width=width), 1.0)
    return file.getvalue()


def test_the_table_fits_eighty_columns_and_commands_stay_whole(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    run = two_folds(make_run)
    output = draw_on_terminal(run, width=80)
    assert "…" not in output
    assert f"lpgnn eval run={run.path}" in output


@pytest.mark.parametrize("no_color", [False, True])
def test_a_terminal_gets_a_table_and_colour_unless_unwanted(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, no_color: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    output = draw_on_terminal(two_folds(make_run, states=["finished", "failed"]), width=110)
    assert "90.0 %" in output
    assert ("\x1b[31m" in output) != no_color  # red: the failed unit


def test_a_run_that_only_selects_says_what_it_is_scored_on(make_run: MakeRun) -> None:
    config = {"dataset": {"name": "MUTAG"}, "protocol": {"name": "nested", "stage": "select"}}
    text = closing(two_folds(make_run, config=config))
    assert text.startswith("MUTAG, test = inner validation parts\n")


def test_karate_is_named_for_what_it_is(make_run: MakeRun) -> None:
    text = closing(make_run([{"train/accuracy": [0.5, 1.0]}]))
    assert "train accuracy: all nodes are supervised" in line(text, "last epoch")
    assert "optimistic" not in text
    assert "honest" not in text
