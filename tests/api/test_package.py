"""`import lpgnn_cli as lpgnn`: all names are there, and cost nothing before they are used."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import lpgnn_cli as lpgnn
from lpgnn_cli.version import __version__


def test_importing_it_imports_nothing_heavy() -> None:
    script = (
        "import sys, lpgnn_cli as lpgnn\n"
        "lpgnn.UserError, lpgnn.RunFailed, dir(lpgnn)\n"
        "heavy = [m for m in ('torch', 'hydra', 'numpy', 'rich', 'mlflow') if m in sys.modules]\n"
        "print(heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_every_name_is_there() -> None:
    assert {name: callable(getattr(lpgnn, name)) for name in dir(lpgnn)} == {
        name: name != "__version__" for name in dir(lpgnn)
    }
    assert {"train", "sweep", "load", "from_pyg", "GraphBatch", "Run"} <= set(dir(lpgnn))
    assert lpgnn.__version__ == __version__
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        _ = lpgnn.trian


def test_the_package_of_sweeps_and_the_function_share_their_name() -> None:
    from lpgnn_cli.sweeps import jobs

    package: Any = lpgnn.sweep
    assert package.jobs is jobs
    with pytest.raises(lpgnn.UserError, match="there is no setting sed"):
        lpgnn.sweep(sed=[1, 2])
