"""Activation functions by name, as modules."""

from __future__ import annotations

from torch import Tensor, nn

from lpgnn_cli.ops.activations import ACTIVATIONS


class Activation(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.function = ACTIVATIONS[name]

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)

    def extra_repr(self) -> str:
        return self.name


# The steepest slope, where it is not 1.
LIPSCHITZ = {"sigmoid": 0.25, "gelu": 1.13}


def activation(name: str) -> nn.Module:
    return nn.Identity() if name == "identity" else Activation(name)
