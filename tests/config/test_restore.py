"""What run folders and checkpoints hold becomes the typed config it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from omegaconf import OmegaConf

from lpgnn_cli.config import restore
from lpgnn_cli.config.compose import compose, make_loader
from lpgnn_cli.config.explain import options
from lpgnn_cli.config.restore import restore_config
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.errors import UserError

LOADER = make_loader()
GROUPS = (
    "dataset",
    "aggregator",
    "propagation",
    "g",
    "inference",
    "protocol",
    "optim",
    "readout",
    "tracking",
)
EVERY = [(group, option) for group in GROUPS for option in options(LOADER, group)]


def plain(config: TrainConfig) -> dict[str, Any]:
    container = OmegaConf.to_container(OmegaConf.structured(config))
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


@pytest.mark.parametrize(("group", "option"), EVERY)
def test_every_option_comes_back(group: str, option: str) -> None:
    needs = {"tu": ["dataset.name=BZR"], "graphs": ["dataset.path=mine.npz"]}
    config = compose("train", [f"{group}={option}", *needs.get(option, [])])
    restored = restore_config(plain(config))
    assert restored == config
    assert type(getattr(restored, group)) is type(getattr(config, group))


def test_yaml_on_disk_comes_back() -> None:
    words = ["dataset=csl", "layers=2", "state=[8,2]", "lr.multiplier=1e-5", "optim=sgd", "name=x"]
    config = compose("train", words)
    text = OmegaConf.to_yaml(OmegaConf.structured(config))
    container = OmegaConf.to_container(OmegaConf.create(text))
    assert isinstance(container, dict)
    assert restore_config({str(key): value for key, value in container.items()}) == config


def test_a_config_of_another_version_is_refused() -> None:
    good = plain(compose("train"))
    spoilt: list[tuple[dict[str, Any], str]] = [
        ({**good, "momentum": 1}, "the config was written by another version of lpgnn: "),
        ({k: v for k, v in good.items() if k != "seed"}, "seed"),
        ({**good, "g": {"name": "lin", "slope": 2}}, "its g has the settings name, slope."),
        ({**good, "layers": "many"}, "the config was written by another version of lpgnn: "),
        ({**good, "layers": 0}, "layers must be at least 1, not 0."),
    ]
    for config, sentence in spoilt:
        with pytest.raises(UserError, match=sentence):
            restore_config(config)


def test_settings_that_went_are_left_out_and_those_that_came_get_their_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = compose("train", ["dataset=karate"])
    old = plain(config)
    old["dataset"]["kind"] = "karate"
    assert restore_config(old) == config
    del old["data"]["memory"], old["optim"]["batch_nodes"], old["metric"]
    assert restore_config(old) == config
    del old["optim"]["decay_every"]
    with pytest.raises(UserError, match=r"another version of lpgnn: its optim has the settings"):
        restore_config(old)
    monkeypatch.setitem(restore.ADDED, "optim.decay_every", 7)
    restored = restore_config(old)
    assert restored == replace(config, optim=replace(config.optim, decay_every=7))


@pytest.mark.parametrize(
    ("group", "values", "sentence"),
    [
        ("aggregator", {"name": "mine"}, "has aggregator=mine, which neither lpgnn nor an inst"),
        ("aggregator", {"name": "gin"}, "its aggregator has the settings name, hidden"),
        ("g", {"name": "os.system"}, "has g=os.system, which neither lpgnn nor an installed"),
        ("g", {"_target_": "os.system"}, "its g has the settings name, _target_"),
        ("dataset", {"_target_": "os.system"}, "its dataset has the settings"),
        ("dataset", "os.system", "was written by another version of lpgnn"),
    ],
)
def test_a_stored_config_selects_from_what_is_registered_and_nothing_else(
    group: str, values: Any, sentence: str
) -> None:
    good = plain(compose("train"))
    spoilt = {**good[group], **values} if isinstance(values, dict) else values
    with pytest.raises(UserError, match=sentence):
        restore_config({**good, group: spoilt})


def test_a_dataset_may_have_a_name_of_its_own() -> None:
    config = compose("train", ["dataset=csl", "dataset.name=my_csl"])
    assert restore_config(plain(config)) == config
