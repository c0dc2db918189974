"""summary.json with types, and the names in it, which existing run folders have."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from lpgnn_cli.metrics import ACCURACY
from lpgnn_cli.runfolder import FINISHED, Rule, RunFolder, UnitResult
from lpgnn_cli.runsummary import EvalSummary, MeanStd, RunSummary, Selection

STORED = """\
{
 "units": 10,
 "units_finished": 9,
 "units_failed": 1,
 "seconds": 4.464921794011389,
 "cv/best_epoch": 44,
 "cv/accuracy_mean": 0.9,
 "cv/accuracy_std": 0.05,
 "cv_from_zero/accuracy_mean": 0.8,
 "cv_from_zero/accuracy_std": 0.07,
 "per_fold_max/accuracy_mean": 0.95,
 "per_fold_max/accuracy_std": 0.02,
 "honest/rule": "validation loss",
 "honest/accuracy_mean": 0.87,
 "honest/accuracy_std": 0.04,
 "persistent/accuracy_mean": 0.89,
 "persistent/accuracy_std": 0.03,
 "honest/epoch_mean": 31.5,
 "train/accuracy_mean": 0.99,
 "train/violation_mean": 0.004329861607402563,
 "test/violation_mean": 0.005,
 "inference/steps_mean": 38.5,
 "inference/gain_max": 14.402532577514648
}"""


def test_what_is_stored_is_read_and_written_again() -> None:
    summary = RunSummary.from_dict(json.loads(STORED))
    assert summary == RunSummary(
        units=10,
        units_finished=9,
        units_failed=1,
        seconds=4.464921794011389,
        optimistic=Selection(Rule.BEST_MEAN_EPOCH, {"accuracy": MeanStd(0.9, 0.05)}, 44),
        best_from_zero=Selection(Rule.BEST_MEAN_EPOCH, {"accuracy": MeanStd(0.8, 0.07)}),
        per_fold_maximum=Selection(Rule.BEST_OWN_EPOCH, {"accuracy": MeanStd(0.95, 0.02)}),
        honest=Selection(Rule.VALIDATION_LOSS, {"accuracy": MeanStd(0.87, 0.04)}, 31.5),
        persistent=Selection(Rule.VALIDATION_LOSS, {"accuracy": MeanStd(0.89, 0.03)}),
        train={"accuracy": 0.99},
        violation={"train": 0.004329861607402563, "test": 0.005},
        inference={"steps_mean": 38.5, "gain_max": 14.402532577514648},
    )
    assert json.dumps(summary.to_dict(), indent=1) == STORED


def test_a_run_that_has_no_result_yet(tmp_path: Path) -> None:
    summary = RunSummary.read(RunFolder(tmp_path))
    assert summary == RunSummary()
    assert summary.best_epoch is None
    assert math.isnan(summary.honest.accuracy.mean)
    assert summary.to_dict() == {
        "units": 0,
        "units_finished": 0,
        "units_failed": 0,
        "seconds": 0.0,
    }


def test_any_stored_number_has_a_value() -> None:
    summary = RunSummary.from_dict(json.loads(STORED))
    assert summary.value("cv/best_epoch") == 44
    assert summary.value("inference/gain_max") == 14.402532577514648
    assert math.isnan(summary.value("honest/rule"))
    assert math.isnan(summary.value("honest/nothing"))


def test_the_numbers_alone_are_enough() -> None:
    """MLflow has words as tags, not as metrics."""
    numbers = {k: float(v) for k, v in json.loads(STORED).items() if not isinstance(v, str)}
    summary = RunSummary.from_dict(numbers)
    assert summary.honest.accuracy == MeanStd(0.87, 0.04)
    assert summary.honest.rule == Rule.NONE
    assert summary.best_epoch == 44


def test_what_version_0_1_called_honest_is_persistent() -> None:
    """Its mean from zero was among what it learnt of inference; of forward runs it is the same."""
    today = ("cv_from_zero", "per_fold_max", "persistent")
    old = {k: v for k, v in json.loads(STORED).items() if not k.startswith(today)}
    forward = RunSummary.from_dict(old)
    assert (forward.honest.accuracy, forward.path_free) == (MeanStd(0.87, 0.04), True)
    old["inference/from_zero_accuracy_mean"] = 0.38
    old["inference/persistent_accuracy_mean"] = 0.87
    summary = RunSummary.from_dict(old)
    assert summary.honest.accuracy.mean == 0.38
    assert math.isnan(summary.honest.accuracy.std)
    assert summary.persistent.accuracy == MeanStd(0.87, 0.04)
    assert summary.states_disagree
    assert not summary.path_free
    assert summary.inference == {"steps_mean": 38.5, "gain_max": 14.402532577514648}


def test_results_of_version_0_1_are_read_as_what_they_were(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.unit("fold-00").mkdir(parents=True)
    old = {"unit": "fold-00", "state": FINISHED, "epochs": 3, "selected_epoch": 3}
    old |= {"rule": "last epoch", "seconds": 1.0, "reason": ""}
    metrics = {"train/accuracy": 0.9, "test/accuracy": 0.8, "test/loss": 0.1}
    path = run.unit("fold-00") / "result.json"
    path.write_text(json.dumps({**old, "metrics": metrics, "inference": {}}))
    forward = run.read_result("fold-00")
    assert forward is not None
    assert (forward.from_zero, forward.persistent) == ({"accuracy": 0.8, "loss": 0.1}, {})
    known = {"persistent_accuracy": 0.8, "from_zero_accuracy": 0.5, "gain": 2.0}
    path.write_text(json.dumps({**old, "metrics": metrics, "inference": known}))
    lagrangian = run.read_result("fold-00")
    assert lagrangian is not None
    assert lagrangian.from_zero == {"accuracy": 0.5}
    assert lagrangian.persistent == {"accuracy": 0.8}
    assert lagrangian.inference == {"gain": 2.0}


def test_what_eval_stores() -> None:
    scored = Selection(Rule.CHECKPOINT, {ACCURACY.name: MeanStd(0.8, 0.1)})
    summary = EvalSummary(3, scored, test={"test/violation_mean": 0.2, "test/loss": 0.5})
    assert json.dumps(summary.to_dict()) == (
        '{"eval/accuracy_mean": 0.8, "eval/accuracy_std": 0.1, "units": 3.0, '
        '"test/violation_mean": 0.2, "test/loss": 0.5}'
    )
    assert EvalSummary(3, scored, persistent=scored).to_dict()["persistent/accuracy_mean"] == 0.8


def test_rules_are_stored_as_these_words(tmp_path: Path) -> None:
    assert {rule.name: rule.value for rule in Rule} == {
        "LAST_EPOCH": "last epoch",
        "VALIDATION_LOSS": "validation loss",
        "VALIDATION_ACCURACY": "validation accuracy",
        "VALIDATION_METRIC": "validation metric",
        "ALL_SUPERVISED": "train accuracy: all nodes are supervised",
        "BEST_MEAN_EPOCH": "best mean epoch",
        "BEST_OWN_EPOCH": "best epoch of each fold",
        "CHECKPOINT": "checkpoint",
        "NONE": "",
    }
    run = RunFolder(tmp_path)
    run.unit("fold-00").mkdir(parents=True)
    run.write_result(UnitResult("fold-00", FINISHED, 3, 2, Rule.by_validation("loss"), {}, 1.0))
    text = (run.unit("fold-00") / "result.json").read_text()
    assert '"rule": "validation loss"' in text
    result = run.read_result("fold-00")
    assert result is not None
    assert result.rule is Rule.VALIDATION_LOSS


@pytest.mark.parametrize("rule", Rule)
def test_only_a_validation_part_selects_by_validation(rule: Rule) -> None:
    assert rule.is_by_validation == rule.value.startswith("validation ")
