from __future__ import annotations

import pytest

from lpgnn_cli import hydra_command
from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.hydra_command import may_have_workers


def train_config(*words: str) -> TrainConfig:
    config = compose("train", list(words))
    assert isinstance(config, TrainConfig)
    return config


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("dataset=mutag",), True),
        (("dataset=mutag", "protocol.workers=2"), True),
        (("dataset=mutag", "protocol=holdout", "protocol.seeds=3"), True),
        (("dataset=mutag", "protocol.workers=1"), False),
        (("dataset=mutag", "protocol=holdout"), False),
        (("dataset=karate",), False),
        (("dataset=mutag", "device=cuda"), False),
        (("dataset=mutag", "resume=runs/train/some"), False),
    ],
)
def test_the_fork_server_starts_early_where_units_train_side_by_side(
    words: tuple[str, ...], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydra_command, "cores", lambda: 8)
    assert may_have_workers(train_config(*words)) == expected


def test_one_core_trains_units_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hydra_command, "cores", lambda: 1)
    assert not may_have_workers(train_config("dataset=mutag"))
    assert may_have_workers(train_config("dataset=mutag", "protocol.workers=2"))
