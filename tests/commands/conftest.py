"""No test of a command sees another's runs or cache."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of all runs."""
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    return tmp_path / "runs"
