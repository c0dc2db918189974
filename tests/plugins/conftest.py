"""A registry that is left as it was, and the package of docs/plugins.md."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hydra.core.config_store import ConfigStore

from lpgnn_cli.config import root
from lpgnn_cli.config.installed import load_plugins
from lpgnn_cli.config.registry import GROUPS

DOCUMENT = Path(__file__).parents[2] / "docs" / "plugins.md"
BLOCK = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)


@pytest.fixture
def clean_registry() -> Iterator[None]:
    """What a test adds is gone after it."""
    before = {group: copy.deepcopy(options.by_name) for group, options in GROUPS.items()}
    load_plugins.cache_clear()
    root._complain.cache_clear()
    yield
    load_plugins.cache_clear()
    for group, by_name in before.items():
        added = GROUPS[group].by_name.keys() - by_name.keys()
        GROUPS[group].by_name = by_name
        nodes = ConfigStore.instance().repo.get(group, {})
        for name in added:
            nodes.pop(f"{name}.yaml", None)
            nodes.pop(f"_{name}.yaml", None)


def documented() -> dict[str, str]:
    """The files of docs/plugins.md."""
    files: dict[str, str] = {}
    for name, text in BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")):
        files[name] = f"{files[name]}\n\n{text}" if name in files else text
    return files


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of docs/plugins.md, as pip installs it."""
    project, target = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("target")
    for name, text in documented().items():
        (project / name).write_text(text, encoding="utf-8")
    words = ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
    done = subprocess.run(
        [sys.executable, *words, "--target", str(target), str(project)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return target
