"""What the units of `protocol=nested` train on."""

from __future__ import annotations

import pytest
import torch

from lpgnn_cli.training.experiment import make_folds

from .conftest import MakeConfig


@pytest.mark.parametrize(
    ("words", "selects"),
    [
        (("optim.schedule=step",), True),
        (("optim.schedule=cosine",), False),
        (("optim.schedule=cosine", "protocol.select=metric"), True),
        (("optim.schedule=step", "protocol.select=last"), False),
    ],
)
def test_graphs_are_held_out_of_an_outer_fold_only_to_select_an_epoch(
    words: tuple[str, ...], selects: bool, make_config: MakeConfig
) -> None:
    config = make_config("dataset=mutag", "protocol=nested", *words)
    folds = make_folds(config)
    assert len(folds) == 30
    for fold in folds:
        split = fold.split
        assert (split.val is not None) is selects
        parts = [part for part in (split.train, split.val, split.test) if part is not None]
        everything = torch.cat(parts).sort().values
        assert torch.equal(everything, torch.arange(188))
        assert len(split.test) in (18, 19)


def test_inner_parts_are_scored_on_what_they_hold_out_whatever_counts(
    make_config: MakeConfig,
) -> None:
    words = ("dataset=mutag", "protocol=nested", "protocol.stage=select", "optim.schedule=cosine")
    for fold in make_folds(make_config(*words)):
        assert fold.split.val is not None
        assert torch.equal(fold.split.val, fold.split.test)
        assert not set(fold.split.val.tolist()) & set(fold.split.train.tolist())
