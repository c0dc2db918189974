"""`make lint` sees an import that goes the wrong way, and one of Hydra's internals."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
INTERNALS = "src/lpgnn_cli/config/hydra_internals.py"
BIN = Path(sys.executable).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The modules of the package and what the linters are told, to be spoilt."""
    shutil.copytree(
        REPOSITORY / "src",
        tmp_path / "src",
        ignore=lambda folder, names: [
            name
            for name in names
            if not (name.endswith(".py") or Path(folder, name).is_dir()) or name == "__pycache__"
        ],
    )
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if not (BIN / tool).is_file():
        pytest.skip(f"{tool} is not installed: make setup")
    return subprocess.run(
        [str(BIN / tool), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def lint_imports(folder: Path) -> tuple[int, str]:
    done = lint(folder, "lint-imports", "--no-logo", "--no-cache")
    return done.returncode, done.stdout + done.stderr


def add(folder: Path, module: str, text: str) -> None:
    path = folder / "src" / "lpgnn_cli" / module
    path.write_text((path.read_text() if path.is_file() else "") + text)


def test_the_tree_as_it_is_passes(copy: Path) -> None:
    code, said = lint_imports(copy)
    assert code == 0, said
    assert "0 broken" in said


@pytest.mark.parametrize(
    ("module", "statement", "wrong"),
    [
        ("config/fields.py", "import lpgnn_cli.sweeps.jobs", ("config", "sweeps")),
        ("data/batch.py", "from lpgnn_cli.training import fit", ("data", "training")),
        ("model/mlp.py", "import lpgnn_cli.training.fit", ("model", "training")),
        ("training/fit.py", "import lpgnn_cli.tracking.state", ("training", "tracking")),
        ("tracking/state.py", "import lpgnn_cli.reporting.text", ("tracking", "reporting")),
        ("reporting/text.py", "import lpgnn_cli.tracking.state", ("reporting", "tracking")),
        ("sweeps/jobs.py", "import lpgnn_cli.commands.train", ("sweeps", "commands")),
        ("commands/data.py", "from lpgnn_cli import cli", ("commands", "cli")),
    ],
)
def test_an_import_the_wrong_way_fails(
    copy: Path, module: str, statement: str, wrong: tuple[str, str]
) -> None:
    add(copy, module, f"\n\ndef later() -> None:\n    {statement}\n")
    code, said = lint_imports(copy)
    assert code == 1, said
    importer, imported = (f"lpgnn_cli.{name}" for name in wrong)
    assert f"{importer} is not allowed to import {imported}:" in said


def test_a_new_module_needs_a_place(copy: Path) -> None:
    add(copy, "sideways.py", "import lpgnn_cli.cli\n")
    code, said = lint_imports(copy)
    assert code == 1, said
    assert "lpgnn_cli.sideways" in said


def test_the_package_does_not_import_its_plugins(copy: Path) -> None:
    add(copy, "sweeps/jobs.py", "from hydra_plugins.lpgnn_launcher import SlurmLauncher\n")
    code, said = lint_imports(copy)
    assert code == 1, said
    assert "lpgnn_cli.sweeps.jobs -> hydra_plugins" in said


def test_one_module_alone_imports_what_is_internal_to_hydra(copy: Path) -> None:
    internal = "from hydra._internal.utils import get_args_parser"
    assert "from hydra._internal" in (copy / INTERNALS).read_text()
    arguments = ("check", "--select", "TID251", "--output-format", "concise", "--no-cache", ".")
    done = lint(copy, "ruff", *arguments)
    assert done.returncode == 0, done.stdout
    add(copy, "commands/sweep.py", f"\n\ndef later() -> None:\n    {internal}\n")
    done = lint(copy, "ruff", *arguments)
    assert done.returncode == 1
    assert "sweep.py" in done.stdout
    assert "hydra_internals.py alone uses it" in done.stdout
