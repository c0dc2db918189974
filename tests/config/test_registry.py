"""Every declared option is complete, and composing needs no torch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import lpgnn_cli.data
import lpgnn_cli.model.constraints
import lpgnn_cli.model.transitions
import lpgnn_cli.propagation  # noqa: F401  the modules that add lpgnn's own options
from lpgnn_cli.config.compose import compose, conf_dir, make_loader
from lpgnn_cli.config.explain import options
from lpgnn_cli.config.registry import GROUPS

LOADER = make_loader()
OWN = [(group, name) for group, found in GROUPS.items() for name in found.by_name]
CHOICES = [(group, option) for group in GROUPS for option in options(LOADER, group)]


@pytest.mark.parametrize(("group", "name"), OWN)
def test_a_declared_option_has_an_implementation(group: str, name: str) -> None:
    assert GROUPS[group].by_name[name].implementation is not None


@pytest.mark.parametrize(("group", "option"), CHOICES)
def test_every_file_leads_to_an_implementation(group: str, option: str) -> None:
    needs = {"tu": ["dataset.name=BZR"], "graphs": ["dataset.path=mine.npz"]}.get(option, [])
    config: Any = getattr(compose("train", [f"{group}={option}", *needs]), group)
    found = GROUPS[group].of(config)
    # What g=auto takes depends on the update rule; by the gradient it is squared.
    named = "squared" if (group, option) == ("g", "auto") else option
    assert GROUPS[group].free_names or config.name == named
    assert type(config) is found.settings


@pytest.mark.parametrize("group", ["aggregator", "g", "propagation"])
def test_every_name_has_a_file(group: str) -> None:
    files = {path.stem for path in (conf_dir() / group).glob("[!_]*.yaml")}
    assert files - {"auto"} == set(GROUPS[group].by_name)


def test_composing_and_help_import_no_torch() -> None:
    script = (
        "import sys\n"
        "from lpgnn_cli.cli import main\n"
        "from lpgnn_cli.config.compose import compose\n"
        "config = compose('train', ['aggregator=gat', 'dataset=csl', 'g=abs_eps'])\n"
        "assert main(['train', '--help']) == 0\n"
        "print('torch' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "False\n")
