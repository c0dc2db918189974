"""The settings of a run, flat."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from lpgnn_cli.config.compose import compose
from lpgnn_cli.settings import flat_config, read_flat_config, uses_g


def test_values_are_written_as_on_the_command_line(tmp_path: Path) -> None:
    text = "lr: {theta: 0.01, multiplier: null}\nstate: [16, 8]\nquiet: false\nname: a\n"
    flat = {
        "lr.theta": "0.01",
        "lr.multiplier": "null",
        "state": "[16,8]",
        "quiet": "false",
        "name": "a",
    }
    assert flat_config(text) == flat
    path = tmp_path / "config.yaml"
    assert read_flat_config(path) == {}
    path.write_text(text)
    assert read_flat_config(path) == flat


@pytest.mark.parametrize(
    ("words", "used"),
    [
        (["g=abs"], True),
        (["g=auto"], False),
        (["propagation=fixed_point"], False),
        (["propagation=layers"], False),
    ],
)
def test_g_counts_where_constraints_are_relaxed(words: list[str], used: bool) -> None:
    config = compose("train", ["dataset=mutag", *words])
    settings = flat_config(OmegaConf.to_yaml(OmegaConf.structured(config)))
    assert "g.name" in settings
    assert uses_g(settings) == used
