"""How numbers are written for people."""

from __future__ import annotations

import math

import pytest

from lpgnn_cli.formatting import (
    compact,
    count,
    csv_text,
    duration,
    mean_std,
    metric_mean_std,
    metric_text,
    one_line,
    per_cent,
)


def test_mean_and_std() -> None:
    assert mean_std(84.94, 3.25) == "84.9 ± 3.2"
    assert mean_std(84.94, None) == "84.9"
    assert mean_std(84.94, 3.25, "{:.2f}".format) == "84.94 ± 3.25"
    assert mean_std(math.nan, math.nan) == "-"


@pytest.mark.parametrize(
    ("name", "mean", "std", "units", "text"),
    [
        ("honest/accuracy_mean", 0.849, 0.032, 10, "84.9 ± 3.2 %"),
        ("honest/accuracy_mean", 0.849, 0.0, 1, "84.9 %"),
        ("honest/accuracy_mean", math.nan, math.nan, 10, "-"),
        ("train/violation_mean", 0.0031, 0.5, 2, "3.1e-3 ± 0.5"),
        ("train/violation_mean", 0.0031, 0.0, 1, "3.1e-3"),
    ],
)
def test_a_metric_over_units(name: str, mean: float, std: float, units: int, text: str) -> None:
    assert metric_mean_std(name, mean, std, units) == text


def test_a_metric_is_shown_as_people_read_it() -> None:
    assert metric_text("test/accuracy", 0.5) == "50.0 %"
    assert metric_text("test/loss", 0.5) == "0.5"


def test_per_cent() -> None:
    assert per_cent(0.12345) == "12.3 %"
    assert per_cent(1, 0) == "100 %"
    assert per_cent(math.nan) == per_cent(math.inf) == "-"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.4123, "0.412"),
        (12.34, "12.3"),
        (0.0031, "3.1e-3"),
        (-12345, "-1.2e4"),
        (math.nan, "-"),
        (math.inf, "inf"),
    ],
)
def test_compact(value: float, text: str) -> None:
    assert compact(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.44, "0.4 s"), (9.96, "10 s"), (59.6, "1:00"), (187, "3:07"), (3723, "1:02:03")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_words() -> None:
    assert (count(1, "unit"), count(2, "unit")) == ("1 unit", "2 units")
    assert one_line("a\nb\x1b[31m  c") == "a b[31m c"
    assert csv_text(["a", "b"], [[1, "x,y"]]) == 'a,b\n1,"x,y"\n'
