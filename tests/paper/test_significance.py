from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from lpgnn_cli.paper.document import find
from lpgnn_cli.paper.reference import reference_tables
from lpgnn_cli.paper.runs import runs_in_folders
from lpgnn_cli.paper.significance import Comparison
from lpgnn_cli.reporting.significance import EXACT_PAIRS, corrected_t_p, sign_flip_p
from lpgnn_cli.runfolder import FAILED, FINISHED, RunFolder, runs_root

MakeRun = Callable[..., RunFolder]


def comparisons(table: str) -> dict[tuple[str, str, str], Comparison]:
    runs = runs_in_folders(runs_root())
    (found,) = find([reference_tables()[table]], runs)
    return {(c.first.row.id, c.second.row.id, c.first.column.id): c for c in found.comparisons}


def test_sign_flips_count_all_patterns() -> None:
    assert sign_flip_p(np.ones(10)) == 2 / 2**10
    assert sign_flip_p(np.zeros(5)) == 1
    values = np.array([0.3, -1.2, 2.0, 0.7, 0.1])
    patterns = itertools.product([-1, 1], repeat=5)
    as_far = [abs(np.dot(p, values)) >= abs(values.sum()) - 1e-9 for p in patterns]
    assert sign_flip_p(values) == np.mean(as_far)


def test_many_pairs_are_tested_by_random_patterns_and_repeatably() -> None:
    values = np.random.RandomState(1).normal(0.4, 1, EXACT_PAIRS + 8)
    exact = stats.permutation_test(
        (values,),
        np.mean,
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    )
    assert sign_flip_p(values) == pytest.approx(exact.pvalue, abs=0.02)
    assert sign_flip_p(values) == sign_flip_p(values)
    assert sign_flip_p(100 + values) > 0


def test_the_correction_is_a_plain_t_test_without_overlap_and_more_careful_with_it() -> None:
    values = np.array([1.0, 2.5, -0.5, 1.7, 0.9])
    assert corrected_t_p(values, 0) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert corrected_t_p(values, 1 / 9) > corrected_t_p(values, 0)
    t = values.mean() / np.sqrt((1 / 5 + 1 / 9) * values.var(ddof=1))
    assert corrected_t_p(values, 1 / 9) == pytest.approx(2 * stats.t.sf(t, 4))
    assert corrected_t_p(np.zeros(4), 0.1) == 1


def test_rows_are_paired_by_fold(make_run: MakeRun) -> None:
    make_run("mutag_single", [0.9] * 9 + [0.8], middle=[0.6] * 10)
    make_run("mutag_single_control", [0.85] * 9 + [0.75], middle=[0.6] * 10)
    comparison = comparisons("graph_classification")["single", "single_control", "mutag"]
    test = comparison.tests["honest"]
    assert (test.pairs, round(test.difference, 6), test.p_flips) == (10, 5.0, 2 / 2**10)


def test_a_unit_that_one_side_lost_is_no_pair(make_run: MakeRun) -> None:
    make_run("mutag_single", [0.9] * 10)
    make_run("mutag_single_control", [0.8] * 10, unit_states=[FINISHED] * 8 + [FAILED] * 2)
    comparison = comparisons("graph_classification")["single", "single_control", "mutag"]
    assert comparison.tests["honest"].pairs == 8


def test_seeds_of_one_fold_count_once(make_run: MakeRun) -> None:
    make_run("enzymes_lp", [0.6] * 20, seeds=2)
    make_run("enzymes_gin", [0.5] * 20, seeds=2)
    both = comparisons("enzymes")["lp", "gin", "seed1_test"]
    assert both.tests["honest"].pairs == 10
    make_run("csl_lp", [0.9] * 100, seeds=20)
    make_run("csl_gin", [0.8] * 100, seeds=20)
    assert comparisons("csl")["lp", "gin", "test"].tests["honest"].pairs == 5


def test_seeds_of_generated_data_count_each(make_run: MakeRun) -> None:
    make_run("clique_squared", [0.9, 0.8, 0.85, 0.9, 0.95], seeds=5)
    make_run("clique_squared_control", [0.8, 0.7, 0.75, 0.9, 0.85], seeds=5)
    assert comparisons("artificial")["squared", "control", "clique"].tests["honest"].pairs == 5


def test_other_folds_are_not_paired(make_run: MakeRun) -> None:
    make_run("mutag_single", [0.9] * 10)
    make_run("mutag_multi", [0.9] * 10, folds_of="others")
    comparison = comparisons("graph_classification")["multi", "single", "mutag"]
    assert comparison.tests == {}
    assert "other folds" in comparison.reason
