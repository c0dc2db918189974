from __future__ import annotations

import torch
from torch import nn

from lpgnn_cli.config.compose import compose
from lpgnn_cli.propagation.optim import build_optimiser, step_decayed


def test_decay_takes_its_share_of_what_is_learnt_and_nothing_of_what_is_fixed() -> None:
    learnt, fixed = nn.Parameter(torch.ones(3)), nn.Parameter(torch.eye(3), requires_grad=False)
    config = compose("train", ["recipe=none", "optim=sgd", "optim.momentum=0"]).optim
    optimiser = build_optimiser(config, [learnt, fixed], lr=0.1)
    learnt.grad = torch.full((3,), 2.0)
    step_decayed(optimiser, share=0.5)
    torch.testing.assert_close(learnt.data, torch.full((3,), 1 - 0.05 - 0.2))
    assert torch.equal(fixed, torch.eye(3))
