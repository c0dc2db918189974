"""The same sweep gives the same accuracies, wherever its jobs run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

import pytest

from .conftest import MakeSweeper, Sweeper

NESTED = (
    *("protocol=nested", "protocol.folds=2", "protocol.retrain=2", "dataset=mutag", "epochs=3"),
    *("tracking=none", "device=cpu", "lr.theta=1e-4,1e-2,1e-1"),
)
TWELVE = ("lr.theta=1e-3,1e-2", "g=abs,squared", "seed=range(3)", "epochs=5")
needs_ray = pytest.mark.skipif(
    not find_spec("ray"), reason="the extra [ray] is not installed: make test-ray"
)


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, str]]:
    """In process, one job after the other."""
    root = tmp_path_factory.mktemp("reference") / "runs"
    root.mkdir()
    return sweep_by(Sweeper(root), "basic")


def sweep_by(sweeper: Sweeper, launcher: str, *words: str) -> list[Mapping[str, str]]:
    code, said = sweeper.run([*TWELVE, f"hydra/launcher={launcher}", *words])
    assert code == 0, said
    rows: list[Mapping[str, str]] = sweeper.leaderboard(without=("seconds", "folder"))
    assert len(rows) == 12
    assert {row["status"] for row in rows} == {"finished"}
    return rows


def test_worker_processes(sweeper: Sweeper, reference: list[Mapping[str, str]]) -> None:
    assert sweep_by(sweeper, "workers", "hydra.launcher.workers=2") == reference


@pytest.mark.slow
def test_joblib(sweeper: Sweeper, reference: list[Mapping[str, str]]) -> None:
    assert sweep_by(sweeper, "joblib", "hydra.launcher.n_jobs=2") == reference


@pytest.mark.slurm
def test_slurm(sweeper: Sweeper, reference: list[Mapping[str, str]], slurm: None) -> None:
    assert sweep_by(sweeper, "slurm", "hydra.launcher.cpus_per_task=1") == reference


@pytest.mark.ray
@needs_ray
def test_ray(sweeper: Sweeper, reference: list[Mapping[str, str]]) -> None:
    assert sweep_by(sweeper, "ray") == reference


@pytest.mark.parametrize(
    ("launcher", "words"),
    [
        pytest.param("workers", ["hydra.launcher.workers=2"], marks=pytest.mark.slow),
        pytest.param("joblib", ["hydra.launcher.n_jobs=2"], marks=pytest.mark.slow),
        pytest.param("slurm", ["hydra.launcher.cpus_per_task=1"], marks=pytest.mark.slurm),
        pytest.param("ray", [], marks=[pytest.mark.ray, needs_ray]),
    ],
)
def test_outer_folds_choose_alike_wherever_jobs_run(
    launcher: str, words: list[str], make_sweeper: MakeSweeper, request: pytest.FixtureRequest
) -> None:
    if launcher == "slurm":
        request.getfixturevalue("slurm")
    tables = []
    for name in ("basic", launcher):
        sweeper = make_sweeper(name)
        sweeper.words = NESTED
        code, said = sweeper.run([f"hydra/launcher={name}", *(words if name == launcher else [])])
        assert code == 0, said
        tables.append((sweeper.folder() / "nested.csv").read_text())
    assert tables[0] == tables[1]
    assert tables[0].count("\n") == 3
