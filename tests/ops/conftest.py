from __future__ import annotations

import importlib.util

import pytest
import torch

from lpgnn_cli.ops import Arcs
from lpgnn_cli.ops.kernels import ENVIRONMENT_VARIABLE

HAS_TORCH_SCATTER = importlib.util.find_spec("torch_scatter") is not None


@pytest.fixture(
    params=[
        "native",
        pytest.param(
            "torch_scatter",
            marks=pytest.mark.skipif(not HAS_TORCH_SCATTER, reason="torch_scatter not installed"),
        ),
    ]
)
def any_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, name)
    return name


@pytest.fixture
def arcs() -> Arcs:
    """Seven nodes: 5 and 6 have no arcs, 4 has none into it, 0 -> 1 is there twice."""
    source = torch.tensor([1, 3, 0, 0, 2, 1, 4, 2])
    target = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3])
    return Arcs.from_sorted(source, target, num_nodes=7)
