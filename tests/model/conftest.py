from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lpgnn_cli.data.batch import GraphBatch

BatchMaker = Callable[..., GraphBatch]


@pytest.fixture
def make_batch() -> BatchMaker:
    """Random graphs in double precision; the last two nodes are isolated."""

    def make(
        *, nodes: int = 9, arcs: int = 20, labels: int = 2, arc_labels: int = 2, seed: int = 0
    ) -> GraphBatch:
        generator = torch.Generator().manual_seed(seed)
        ends = torch.randint(0, nodes - 2, (2, arcs), generator=generator)
        return GraphBatch.from_arcs(
            features=torch.randn(nodes, labels, dtype=torch.float64, generator=generator),
            source=ends[0],
            target=ends[1],
            arc_labels=torch.randn(arcs, arc_labels, dtype=torch.float64, generator=generator),
            graph_ptr=torch.tensor([0, nodes]),
            targets=torch.tensor([0]),
            target_level="graph",
            num_classes=2,
        )

    return make
