"""Python values become words that the command line reads back as the same values."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser

from lpgnn_cli.api.words import flatten, list_settings, sweep_words, train_words
from lpgnn_cli.errors import UserError


def read_back(word: str) -> Any:
    return OverridesParser.create().parse_override(word).value()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -3,
        0.1,
        1e-05,
        1e22,
        math.inf,
        "mutag",
        "with space",
        "a,b",
        "it's",
        'say "so"',
        "back\\slash",
        "ends in a quote'",
        "ends in a backslash\\",
        "k=v",
        "[1,2]",
        "{a:1}",
        "range(3)",
        "null",
        "True",
        "12",
        "1e-3",
        "",
        "~x",
        "Grüße",
        "lagrangian/mutag",
        [16, 2],
        [],
        ["a b", None, 0.5],
    ],
)
def test_a_value_comes_back(value: Any) -> None:
    (word,) = train_words({"key": value})
    found = read_back(word)
    assert found == value
    assert type(found) is type(value)


def test_words_read_as_they_would_be_typed() -> None:
    assert train_words(
        flatten({"dataset": "mutag", "lr": {"theta": 1e-3}, "g.eps": 0.1, "quiet": True})
    ) == ["dataset=mutag", "lr.theta=0.001", "g.eps=0.1", "quiet=true"]
    assert train_words({"~recipe": None}) == ["~recipe"]


def test_numbers_of_other_libraries_are_numbers() -> None:
    values = (np.float64(0.5), np.int64(3), torch.tensor(2), np.array([1, 2]), (1, 2), range(2))
    words = train_words({f"k{i}": value for i, value in enumerate(values)})
    assert words == ["k0=0.5", "k1=3", "k2=2", "k3=[1,2]", "k4=[1,2]", "k5=[0,1]"]
    assert train_words({"path": Path("/a b")}) == ["path='/a b'"]


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(UserError, match="seed cannot be a object: give a number"):
        train_words({"seed": object()})


def test_lists_are_axes_unless_the_setting_is_a_list() -> None:
    flat = {
        "g": ["squared", "abs"],
        "seed": range(3),
        "lr.multiplier": (None, 0.1),
        "state": [16, 2],
        "aggregator.hidden": [[20], [50, 50], []],
        "readout.hidden": [],
        "epochs": 5,
    }
    assert sweep_words(flat) == [
        "g=squared,abs",
        "seed=0,1,2",
        "lr.multiplier=null,0.1",
        "state=[16,2]",
        "aggregator.hidden=[20],[50,50],[]",
        "readout.hidden=[]",
        "epochs=5",
    ]
    with pytest.raises(UserError, match="seed has no values to sweep over"):
        sweep_words({"seed": []})


def test_the_settings_that_are_lists_are_known() -> None:
    assert {"state", "aggregator.hidden", "readout.hidden", "dataset.skips"} <= set(list_settings())
    assert not {"seed", "g.eps", "lr.theta", "epochs"} & set(list_settings())
