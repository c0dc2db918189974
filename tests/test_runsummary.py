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
 "honest/rule": "validation loss",
 "honest/accuracy_mean": 0.87,
 "honest/accuracy_std": 0.04,
 "honest/epoch_mean": 31.5,
 "train/accuracy_mean": 0.99,
 "train/violation_mean": 0.004329861607402563,
 "test/violation_mean": 0.005,
 "inference/from_zero_accuracy_mean": 0.38235294117647056,
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
        honest=Selection(Rule.VALIDATION_LOSS, {"accuracy": MeanStd(0.87, 0.04)}, 31.5),
        train={"accuracy": 0.99},
        violation={"train": 0.004329861607402563, "test": 0.005},
        inference={"from_zero_accuracy_mean": 0.38235294117647056, "gain_max": 14.402532577514648},
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


def test_what_eval_stores() -> None:
    scored = Selection(Rule.CHECKPOINT, {ACCURACY.name: MeanStd(0.8, 0.1)})
    summary = EvalSummary(3, scored, {"test/violation_mean": 0.2, "test/loss": 0.5})
    assert json.dumps(summary.to_dict()) == (
        '{"eval/accuracy_mean": 0.8, "eval/accuracy_std": 0.1, "units": 3.0, '
        '"test/violation_mean": 0.2, "test/loss": 0.5}'
    )
    known = EvalSummary(3, scored, from_zero_accuracy=0.7).to_dict()
    assert known["eval/from_zero_accuracy_mean"] == 0.7


def test_rules_are_stored_as_these_words(tmp_path: Path) -> None:
    assert {rule.name: rule.value for rule in Rule} == {
        "LAST_EPOCH": "last epoch",
        "VALIDATION_LOSS": "validation loss",
        "VALIDATION_ACCURACY": "validation accuracy",
        "ALL_SUPERVISED": "train accuracy: all nodes are supervised",
        "BEST_MEAN_EPOCH": "best mean epoch",
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
