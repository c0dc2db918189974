from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from lpgnn_cli.config.compose import compose
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.model.readout import Readout


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_dropout_acts_whatever_the_hidden_layers(
    name: str, make_batch: Callable[..., GraphBatch]
) -> None:
    config = compose("train", ["~recipe", f"readout={name}", "readout.dropout=0.5"]).readout
    batch = make_batch()
    states = torch.randn(batch.num_nodes, 64)
    readout = Readout(config, sizes=[64], classes=2)
    readout.train()
    assert not torch.equal(readout([states], batch), readout([states], batch))
    readout.eval()
    assert torch.equal(readout([states], batch), readout([states], batch))
