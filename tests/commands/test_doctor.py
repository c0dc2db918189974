"""`lpgnn doctor` tells what is there and how to get what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.commands import doctor


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LPGNN_DATA", str(tmp_path))
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("LPGNN_SEGMENT", raising=False)
    monkeypatch.delenv("LPGNN_ARC_KERNEL", raising=False)
    return tmp_path


def screen(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["doctor"])
    return code, capsys.readouterr().out


def test_one_screen_with_versions_device_backend_store_and_data(
    capsys: pytest.CaptureFixture[str], surroundings: Path
) -> None:
    code, out = screen(capsys)
    assert code == 0
    assert len(out.splitlines()) <= 24
    for words in (
        "hydra-core 1.3",
        "mlflow 3",
        "torch 2",
        "segment backend",
        "arc kernel",
        "mlflow.db",
    ):
        assert words in out
    assert f"{surroundings} ($LPGNN_DATA)" in out


def test_datasets_are_looked_for_where_training_looks(
    capsys: pytest.CaptureFixture[str], surroundings: Path
) -> None:
    (surroundings / "NCI1.zip").touch()
    _, out = screen(capsys)
    assert "on disk: nci1" in out
    absent = next(line for line in out.splitlines() if "not here yet" in line)
    assert "proteins" in absent
    assert "nci1" not in absent
    assert "lpgnn data prepare ptc proteins" in out


def test_a_missing_package_is_named_with_its_remedy_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = doctor._version
    monkeypatch.setattr(
        doctor, "_version", lambda name: None if name == "pooch" else installed(name)
    )
    code, out = screen(capsys)
    assert code == 1
    assert "missing: pooch" in out
    assert "pip install pooch" in out


def test_a_missing_torch_scatter_is_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = doctor._version
    monkeypatch.setattr(
        doctor, "_version", lambda name: None if name == "torch-scatter" else installed(name)
    )
    code, out = screen(capsys)
    assert code == 0
    assert "pip install --no-build-isolation torch-scatter" in out


def test_a_missing_llvmlite_is_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = doctor._version
    monkeypatch.setattr(
        doctor, "_version", lambda name: None if name == "llvmlite" else installed(name)
    )
    code, out = screen(capsys)
    assert code == 0
    assert "pip install llvmlite" in out


@pytest.mark.parametrize("variable", ["LPGNN_SEGMENT", "LPGNN_ARC_KERNEL"])
def test_a_backend_that_does_not_exist(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "fast")
    code, out = screen(capsys)
    assert code == 1
    assert f"unset {variable}" in out


def test_the_store_of_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://tracking.example:5000")
    _, out = screen(capsys)
    assert "http://tracking.example:5000 ($MLFLOW_TRACKING_URI)" in out
