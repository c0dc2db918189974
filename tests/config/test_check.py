"""Ranges, choices and agreements between settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpgnn_cli.config.check import check
from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.fields import Range, setting
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.errors import UserError


@dataclass
class Inner:
    share: float = setting(low=0, high=1, low_open=True, high_open=True)


@dataclass
class Outer:
    inner: Inner = setting()
    sizes: list[int] = setting(low=1)
    optional: int | None = setting(low=2)
    colour: str = setting(choices=("red", "green"))


def outer(**changes: Any) -> Outer:
    return replace(Outer(Inner(share=0.5), [1, 2], None, "red"), **changes)


def test_values_in_range_pass() -> None:
    check(outer())
    check(outer(optional=2, colour="green", sizes=[]))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"inner": Inner(share=0)}, "inner.share must be greater than 0 and less than 1, not 0."),
        ({"inner": Inner(share=1)}, "inner.share must be greater than 0 and less than 1, not 1."),
        ({"inner": Inner(share=float("nan"))}, "inner.share must be a finite number, not nan."),
        ({"sizes": [3, 0]}, "sizes[1] must be at least 1, not 0."),
        ({"sizes": "/home/x"}, "sizes must be made of numbers, not of '/home/x'."),
        ({"optional": 1}, "optional must be at least 2, not 1."),
        ({"colour": "gren"}, "colour must be one of red, green, not gren. Did you mean green?"),
        ({"colour": "???"}, "colour has no value: add colour=..."),
    ],
)
def test_a_value_that_cannot_be_used_is_named(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as raised:
        check(outer(**changes))
    assert str(raised.value) == sentence


@given(
    value=st.floats(-10, 10),
    low=st.floats(-5, 0),
    width=st.floats(0, 5),
    low_open=st.booleans(),
    high_open=st.booleans(),
)
def test_a_range_admits_what_its_sentence_says(
    value: float, low: float, width: float, low_open: bool, high_open: bool
) -> None:
    high = low + width
    limits = Range(low, high, low_open, high_open)
    above = value > low if low_open else value >= low
    below = value < high if high_open else value <= high
    assert limits.admits(value) == (above and below)
    assert ("greater than" in str(limits)) == low_open
    assert ("less than" in str(limits)) == high_open


@pytest.fixture(scope="module")
def config() -> TrainConfig:
    return compose("train")


def test_state_sizes_agree_with_layers(config: TrainConfig) -> None:
    check(replace(config, layers=3, state=[4]))
    check(replace(config, layers=3, state=[4, 4, 2]))
    with pytest.raises(UserError, match=r"layers=3 needs one state size or 3 of them"):
        check(replace(config, layers=3, state=[4, 2]))
    with pytest.raises(UserError, match=r"layers=1 needs one state size\."):
        check(replace(config, layers=1, state=[4, 2]))
    for layers in (1, None):
        with pytest.raises(UserError, match=r"state has no entries: give one size for all layers"):
            check(replace(config, layers=layers, state=[]))


@pytest.mark.parametrize("workers", ["0", "-1", "all", "2.5"])
def test_workers_are_auto_or_a_number(config: TrainConfig, workers: str) -> None:
    check(replace(config, protocol=replace(config.protocol, workers="12")))
    with pytest.raises(UserError, match=r"protocol\.workers must be auto or a number"):
        check(replace(config, protocol=replace(config.protocol, workers=workers)))


def test_devices(config: TrainConfig) -> None:
    for device in ("auto", "cpu", "cuda", "cuda:1", "mps"):
        check(replace(config, device=device))
    with pytest.raises(UserError, match="device must be auto, cpu"):
        check(replace(config, device="gpu"))


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["aggregator=gin", "aggregator.name=gat"],
            r"aggregator\.name follows from aggregator: write aggregator=gat\.",
        ),
        (["protocol.name=nested"], "write protocol=nested"),
        (["optim.name=sgd"], "write optim=sgd"),
        (["dataset=clique", "dataset.subgraph_nodes=9"], r"must be at most dataset\.nodes \(7\)"),
        (
            ["protocol=holdout", "protocol.validation=0.6", "protocol.test=0.4"],
            "leave nothing to train on",
        ),
        (
            ["aggregator=gat", "aggregator.combine=concat", "aggregator.heads=3", "state=[16]"],
            r"divides a state of 16 among aggregator\.heads=3",
        ),
    ],
)
def test_other_agreements(overrides: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        compose("train", overrides)
