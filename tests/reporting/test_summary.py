from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.runfolder import Rule, RunFolder
from lpgnn_cli.runsummary import RunSummary

from .conftest import MakeRun


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def stored(run: RunFolder) -> dict[str, Any]:
    """summary.json as it is on disk: its names are a contract."""
    summary = summarise(run)
    written: dict[str, Any] = json.loads(run.summary_path.read_text())
    assert written == summary.to_dict()
    assert RunSummary.read(run) == summary
    return written


def test_values_equal_those_computed_by_hand(make_run: MakeRun) -> None:
    run = make_run(
        [
            {"test/accuracy": [0.5, 0.9, 0.7], "train/accuracy": [0.6, 0.8, 1.0]},
            {"test/accuracy": [0.5, 0.7, 0.7], "train/accuracy": [0.6, 0.7, 0.8]},
        ]
    )
    summary = stored(run)
    assert summary["cv/best_epoch"] == 2
    assert summary["cv/accuracy_mean"] == pytest.approx(0.8)
    assert summary["cv/accuracy_std"] == pytest.approx(0.1)  # population: sqrt(2 * 0.1^2 / 2)
    assert summary["honest/accuracy_mean"] == pytest.approx(0.7)
    assert summary["honest/accuracy_std"] == pytest.approx(0.0)
    assert summary["honest/rule"] == "last epoch"
    assert summary["train/accuracy_mean"] == pytest.approx(0.9)
    assert summary["seconds"] == pytest.approx(21.0)
    assert (summary["units"], summary["units_finished"], summary["units_failed"]) == (2, 2, 0)


def test_ties_go_to_the_earliest_epoch(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5, 0.75, 0.75, 0.6]}])
    assert stored(run)["cv/best_epoch"] == 2


def test_failed_units_are_counted_but_not_averaged(make_run: MakeRun) -> None:
    curves = [
        {"test/accuracy": [0.5, 0.6]},
        {"test/accuracy": [1.0]},
        {"test/accuracy": [0.7, 0.8]},
    ]
    run = make_run(curves, states=["finished", "diverged", "finished"])
    summary = stored(run)
    assert (summary["units"], summary["units_finished"], summary["units_failed"]) == (3, 2, 1)
    assert summary["cv/best_epoch"] == 2
    assert summary["cv/accuracy_mean"] == pytest.approx(0.7)
    assert summary["honest/accuracy_mean"] == pytest.approx(0.7)


def test_a_unit_that_stopped_early_keeps_its_last_value(make_run: MakeRun) -> None:
    run = make_run(
        [
            {"test/accuracy": [0.5, 0.6], "val/loss": [1.0, 1.1]},
            {"test/accuracy": [0.5, 0.5, 0.9], "val/loss": [1.0, 0.9, 0.8]},
        ],
        rule=Rule.VALIDATION_LOSS,
        selected=[1, 3],
    )
    summary = stored(run)
    assert summary["cv/best_epoch"] == 3
    assert summary["cv/accuracy_mean"] == pytest.approx((0.6 + 0.9) / 2)
    assert summary["honest/accuracy_mean"] == pytest.approx((0.5 + 0.9) / 2)
    assert summary["honest/rule"] == "validation loss"
    assert summary["honest/epoch_mean"] == pytest.approx(2.0)


def test_without_early_stopping_only_common_epochs_count(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5, 0.6]}, {"test/accuracy": [0.5, 0.5, 1.0]}])
    assert stored(run)["cv/best_epoch"] == 2


def test_all_nodes_supervised_reports_train_accuracy_and_says_so(make_run: MakeRun) -> None:
    summary = stored(make_run([{"train/accuracy": [0.3, 0.9]}]))
    assert summary["cv/accuracy_mean"] == pytest.approx(0.9)
    assert summary["honest/accuracy_mean"] == pytest.approx(0.9)
    assert summary["honest/rule"] == "train accuracy: all nodes are supervised"


def test_a_test_part_that_is_the_training_part_is_not_reported_as_a_test(make_run: MakeRun) -> None:
    columns = {"train/accuracy": [0.3, 0.9], "test/accuracy": [0.4, 1.0]}
    protocol: dict[str, object] = {"name": "transductive", "supervised_per_class": None}
    summary = stored(make_run([columns], config={"protocol": protocol}))
    assert summary["honest/rule"] == "train accuracy: all nodes are supervised"
    # The same nodes: as they are evaluated, not as training saw them on its way.
    assert summary["cv/accuracy_mean"] == pytest.approx(1.0)
    protocol["supervised_per_class"] = 1
    summary = stored(make_run([columns], config={"protocol": protocol}))
    assert summary["honest/rule"] == "last epoch"
    assert summary["cv/accuracy_mean"] == pytest.approx(1.0)


def test_violations_are_those_of_the_selected_epochs(make_run: MakeRun) -> None:
    columns = {
        "test/accuracy": [0.5, 0.6],
        "train/violation_mean": [0.4, 0.2],
        "test/violation_mean": [0.8, 0.1],
    }
    summary = stored(make_run([columns, columns], selected=[1, 2]))
    assert summary["train/violation_mean"] == pytest.approx(0.3)
    assert summary["test/violation_mean"] == pytest.approx(0.45)


def test_curves_and_folds_are_written(make_run: MakeRun) -> None:
    run = make_run(
        [{"test/accuracy": [0.5, 0.9]}, {"test/accuracy": [0.7, 0.5]}], states=["finished"] * 2
    )
    summarise(run)
    curves = read_csv(run.path / "curves.csv")
    assert [row["epoch"] for row in curves] == ["1", "2"]
    assert [float(row["test/accuracy_mean"]) for row in curves] == pytest.approx([0.6, 0.7])
    assert [float(row["test/accuracy_std"]) for row in curves] == pytest.approx([0.1, 0.2])
    folds = read_csv(run.path / "folds.csv")
    assert [row["unit"] for row in folds] == ["fold-00", "fold-01"]
    assert [float(row["accuracy_at_cv_best"]) for row in folds] == [0.9, 0.5]
    assert [float(row["best_accuracy"]) for row in folds] == [0.9, 0.7]
    assert [int(row["best_epoch"]) for row in folds] == [2, 1]


def test_the_honest_accuracy_is_from_zero_and_that_of_training_has_its_own_name(
    make_run: MakeRun,
) -> None:
    run = make_run(
        [{"test/accuracy": [0.5, 0.9]}, {"test/accuracy": [0.5, 0.7]}],
        from_zero=[{"accuracy": 0.6}, {"accuracy": 0.4}],
        persistent=[{"accuracy": 0.9}, {"accuracy": 0.7}],
    )
    summary = stored(run)
    assert summary["honest/accuracy_mean"] == pytest.approx(0.5)
    assert summary["honest/accuracy_std"] == pytest.approx(0.1)
    assert summary["persistent/accuracy_mean"] == pytest.approx(0.8)
    assert summary["cv/accuracy_mean"] == pytest.approx(0.8)
    assert "cv_from_zero/accuracy_mean" not in summary
    assert RunSummary.read(run).states_disagree
    folds = read_csv(run.path / "folds.csv")
    assert [float(row["accuracy"]) for row in folds] == [0.6, 0.4]
    assert [float(row["persistent_accuracy"]) for row in folds] == [0.9, 0.7]


def test_the_best_mean_epoch_from_zero_counts_only_if_every_unit_was_scored_there(
    make_run: MakeRun,
) -> None:
    curves = [{"test/accuracy": [0.5, 0.9, 0.6]}, {"test/accuracy": [0.5, 0.7, 0.6]}]
    scored = [(2, {"accuracy": 0.4}), (2, {"accuracy": 0.6})]
    run = make_run(curves, rescored=scored)
    summary = stored(run)
    assert summary["cv/best_epoch"] == 2
    assert summary["cv_from_zero/accuracy_mean"] == pytest.approx(0.5)
    assert summary["cv_from_zero/accuracy_std"] == pytest.approx(0.1)
    folds = read_csv(run.path / "folds.csv")
    assert [float(row["accuracy_at_cv_best_from_zero"]) for row in folds] == [0.4, 0.6]
    for missing in ((1, {"accuracy": 0.6}), (0, {})):
        summary = stored(make_run(curves, rescored=[scored[0], missing]))
        assert "cv_from_zero/accuracy_mean" not in summary


def test_the_per_fold_maximum_takes_each_unit_at_its_own_best_epoch(make_run: MakeRun) -> None:
    summary = stored(
        make_run([{"test/accuracy": [0.5, 0.9, 0.6]}, {"test/accuracy": [0.7, 0.5, 0.6]}])
    )
    assert summary["per_fold_max/accuracy_mean"] == pytest.approx(0.8)
    assert summary["per_fold_max/accuracy_std"] == pytest.approx(0.1)
    assert summary["cv/accuracy_mean"] == pytest.approx(0.7)


def test_what_inference_gave_is_averaged(make_run: MakeRun) -> None:
    inference = [{"steps": 10.0, "gain": 0.5}, {"steps": 30.0, "gain": 1.5}]
    summary = stored(make_run([{"test/accuracy": [0.5]}] * 2, inference=inference))
    assert summary["inference/steps_mean"] == pytest.approx(20)
    assert summary["inference/gain_mean"] == pytest.approx(1.0)
    assert summary["inference/gain_max"] == pytest.approx(1.5)


def test_an_interrupted_run_has_curves_but_no_result(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5, 0.6]}] * 2, states=["interrupted"] * 2)
    (run.unit("fold-01") / "result.json").unlink()
    summary = stored(run)
    assert summary["units_finished"] == summary["units_failed"] == 0
    assert not any(key.startswith(("cv/", "honest/")) for key in summary)
    assert len(read_csv(run.path / "curves.csv")) == 2


def test_a_run_without_any_epoch_can_be_summarised(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5]}])
    for name in ("result.json", "metrics.csv"):
        (run.unit("fold-00") / name).unlink()
    assert stored(run)["units"] == 1


def test_divergence_to_infinity_gives_no_warning(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5, 0.4], "train/loss": [1.0, np.inf]}] * 2)
    assert stored(run)["cv/best_epoch"] == 1
