"""Runs of a test's own, small ones, and graphs to train on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import lpgnn_cli as lpgnn

# Nothing but the folder, one core, one process.
SOBER: dict[str, Any] = {
    "tracking": "none",
    "figures": False,
    "quiet": True,
    "threads": 1,
    "device": "cpu",
}
SMALL: dict[str, Any] = {
    **SOBER,
    "epochs": 3,
    "protocol": {"folds": 2, "workers": 1},
    "inference": {"steps": 20},
}


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    return tmp_path / "runs"


@pytest.fixture
def small() -> dict[str, Any]:
    """Settings of a run that takes a second."""
    return dict(SMALL)


@pytest.fixture
def sober() -> dict[str, Any]:
    return dict(SOBER)


@pytest.fixture(scope="session")
def pyg() -> Any:
    with warnings.catch_warnings():
        # The library itself calls what newer versions of torch call deprecated.
        warnings.simplefilter("ignore")
        return pytest.importorskip(
            "torch_geometric", reason="needs the extra [pyg]: pip install lpgnn-cli[pyg]"
        )


@pytest.fixture
def make_graphs(pyg: Any) -> Callable[..., list[Any]]:
    """Rings with a chord or without, two features and one arc feature; `y` per graph or node."""

    def make(count: int = 12, level: str | None = "graph") -> list[Any]:
        random = torch.Generator().manual_seed(0)
        graphs = []
        for number in range(count):
            size, chord = 5 + number % 4, number % 2
            ends = torch.arange(size)
            arcs = torch.stack([ends, (ends + 1) % size])
            if chord:
                arcs = torch.cat([arcs, torch.tensor([[0], [2]])], dim=1)
            arcs = torch.cat([arcs, arcs.flip(0)], dim=1)
            y = {"graph": torch.tensor([chord]), "node": ends % 2, None: None}[level]
            x = torch.cat([torch.randn(size, 1, generator=random), (ends % 2)[:, None]], dim=1)
            weights = torch.rand(arcs.shape[1], 1, generator=random)
            graphs.append(pyg.data.Data(edge_index=arcs, x=x, edge_attr=weights, y=y))
        return graphs

    return make


@pytest.fixture
def trained(small: dict[str, Any], make_graphs: Callable[..., list[Any]]) -> lpgnn.Run:
    """A run on graphs in memory."""
    return lpgnn.train(dataset=make_graphs(), **small)
