"""Neighbours that are alike: the run averages scores, and says so to whoever loads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import lpgnn_cli
from lpgnn_cli.runfolder import MODEL

WORDS = ("dataset=nodes", "epochs=20", "figures=false", "tracking=none", "quiet=true")


def write(path: Path, alike: bool) -> Path:
    """Two classes, of which neighbours have the same one, or the other."""
    random = np.random.RandomState(0)
    nodes, edges = 200, 800
    labels = np.arange(nodes) % 2
    source = random.randint(nodes, size=edges)
    wanted = labels[source] if alike else 1 - labels[source]
    target = 2 * random.randint(nodes // 2, size=edges) + wanted
    part = random.randint(3, size=nodes)
    np.savez(
        path,
        node_features=(random.randn(nodes, 5) + labels[:, None]).astype(np.float32),
        node_labels=labels,
        edges=np.stack([source, target], axis=1),
        train_masks=part == 0,
        val_masks=part == 1,
        test_masks=part == 2,
    )
    return path


@pytest.mark.parametrize("alike", [True, False])
def test_the_labels_of_training_choose(
    alike: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    path = write(tmp_path / "mine.npz", alike)
    run = lpgnn_cli.train(*WORDS, f"dataset.path={path}")
    content = torch.load(run.folder / "units" / "fold-00" / MODEL, weights_only=True)
    config = content["config"]
    assert config["readout"]["learnt"] is not alike
    assert config["aggregator"]["mixing"] == ("identity" if alike else "learnt")
    assert run.accuracy > 0.7
