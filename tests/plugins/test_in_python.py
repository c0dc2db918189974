"""Options that are added by a decorator, in a process of one's own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lpgnn_cli import plugins as lp
from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.effects import essence
from lpgnn_cli.config.registry import GROUPS
from lpgnn_cli.config.restore import restore_config
from lpgnn_cli.data import load_dataset
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.constraints import build_constraint
from lpgnn_cli.sweeps.identity import identify

pytestmark = pytest.mark.usefixtures("clean_registry")


@dataclass
class PowerConfig(lp.ConstraintConfig):
    power: float = lp.setting(default=3.0, low=1, help="Exponent.")
    note: str = lp.setting(default="", affects_results=False, help="A remark.")
    unset: int = lp.setting(low=0, help="A setting without a default.")


def power(residual: Tensor, config: PowerConfig) -> Tensor:
    return residual.abs() ** config.power


@dataclass
class PairsConfig(lp.DatasetConfig):
    pairs: int = lp.setting(default=4, low=1, help="How many.")


def pairs(config: PairsConfig, request: lp.Request) -> lp.Dataset:
    graphs = config.pairs
    batch = lp.GraphBatch.from_arcs(
        features=torch.zeros(2 * graphs, 0),
        source=torch.arange(2 * graphs),
        target=torch.arange(2 * graphs) ^ 1,
        graph_ptr=torch.arange(graphs + 1) * 2,
        targets=torch.arange(graphs) % 2,
        target_level="graph",
        num_classes=2,
    )
    return lp.Dataset.from_batch(config, batch, seeded=True)


def test_values_ranges_and_settings_without_a_default() -> None:
    lp.constraint("power", PowerConfig)(power)
    config = compose("train", ["g=power", "g.unset=1"]).g
    assert config == PowerConfig(name="power", power=3.0, note="", unset=1)
    assert build_constraint(config)(torch.tensor([-2.0])).tolist() == [8.0]
    for words, sentence in {
        ("g=power",): "g.unset has no value yet: add g.unset=...",
        ("g=power", "g.unset=1", "g.power=0"): "g.power must be at least 1, not 0.",
        ("g=power", "g.unset=1", "g.name=abs"): "g.name follows from g: write g=abs.",
    }.items():
        with pytest.raises(UserError) as raised:
            compose("train", words)
        assert str(raised.value).startswith(sentence)


def test_a_definition_again_replaces_the_option_and_another_one_is_refused() -> None:
    lp.constraint("power", PowerConfig)(power)
    lp.constraint("power", PowerConfig)(power)

    with pytest.raises(UserError, match=r"g=power exists already, from the module "):

        @lp.constraint("power", PowerConfig)
        def other(residual: Tensor, config: PowerConfig) -> Tensor:
            return residual


def test_a_dataset_brings_its_protocol_and_the_common_settings() -> None:
    lp.dataset("pairs", PairsConfig, protocol="holdout")(pairs)
    config = compose("train", ["dataset=pairs", "dataset.features=degree"])
    assert (config.protocol.name, config.dataset.positional) == ("holdout", 0)
    dataset = load_dataset(config.dataset, None, 0)
    assert dataset.batch.num_graphs == 4
    assert dataset.batch.features.shape == (8, 1)
    assert compose("train", ["dataset=pairs", "protocol=kfold"]).protocol.name == "kfold"


def test_stored_configs_come_back_by_name_where_the_option_is_known() -> None:
    lp.constraint("power", PowerConfig)(power)
    lp.constraint("plain")(lambda residual, config: residual)
    lp.dataset("pairs", PairsConfig)(pairs)
    for words in (["g=power", "g.unset=2"], ["g=plain"], ["dataset=pairs", "dataset.name=mine"]):
        config = compose("train", words)
        plain: dict[str, Any] = asdict(config)
        assert restore_config(plain) == config
    plain["g"] = asdict(PowerConfig(name="power", power=2.0, unset=0))
    del GROUPS["g"].by_name["power"]
    with pytest.raises(UserError, match=r"has g=power, which neither lpgnn nor an installed plug"):
        restore_config(plain)
    plain["g"] = {"name": "plain"}
    del GROUPS["g"].by_name["plain"]
    with pytest.raises(UserError, match=r"has g=plain, which neither lpgnn nor an installed plug"):
        restore_config(plain)


def test_jobs_of_a_sweep_are_told_apart_by_what_affects_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lp.constraint("power", PowerConfig)(power)
    words = ["dataset=karate", "g=power", "g.unset=1"]
    own = identify(compose("train", words))
    assert identify(compose("train", [*words, "g.note=hm"])) == own
    assert identify(compose("train", [*words, "g.power=2"])) != own
    assert essence({"g.note": "hm", "g.power": "2"}) == {"g.power": "2"}
    monkeypatch.setattr("inspect.getsource", lambda thing: "edited")
    assert identify(compose("train", words)) != own, "its code is part of what is computed"
    lin = compose("train", ["dataset=karate", "g=lin"])
    assert identify(lin) == identify(lin)


DEFINED = """
from dataclasses import dataclass
from lpgnn_cli import plugins as lp

@dataclass
class HalfConfig(lp.ConstraintConfig):
    scale: float = lp.setting(default=0.5, low=0)

@lp.constraint("half", HalfConfig)
def half(residual, config):
    return config.scale * residual.abs()
"""
USED = """
from lpgnn_cli.commands.train import run
from lpgnn_cli.config.compose import compose
from lpgnn_cli.training.experiment import Experiment

if __name__ == "__main__":
    words = ["g=half", "epochs=1", "protocol.folds=2", "protocol.workers=2", "tracking=none"]
    config = compose("train", [*words, "device=cpu", "figures=false", "quiet=true"])
    print("workers", Experiment.prepare(config).workers)
    run(config)
"""


@pytest.mark.parametrize(
    ("script", "workers"), [(f"import half\n{USED}", 2), (f"{DEFINED}\n{USED}", 1)]
)
def test_folds_run_side_by_side_where_other_processes_can_find_the_code(
    script: str, workers: int, tmp_path: Path
) -> None:
    (tmp_path / "half.py").write_text(DEFINED)
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"workers {workers}\n" in done.stdout
    assert len(list(tmp_path.glob("runs/train/*/*/units/*/result.json"))) == 2
