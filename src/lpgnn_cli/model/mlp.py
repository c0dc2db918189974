"""Multi-layer perceptrons, open between their first and their last linear layer.

Transitions apply the first layer before rows are gathered on arcs and the last one after they are
summed, which is exact and cheaper: hence `hidden` and `last` beside the usual `forward`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from lpgnn_cli.model.activations import activation as build_activation


def normalisation(name: str, size: int) -> nn.Module:
    if name == "batch":
        return BatchNorm(size)
    if name == "layer":
        return nn.LayerNorm(size)
    assert name == "none", name
    return nn.Identity()


def linear_layer(in_size: int, out_size: int, bias: bool = True) -> nn.Linear:
    """torch's own layer and initialisation, without its warning where there is no input."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        return nn.Linear(in_size, out_size, bias=bias)


class BatchNorm(nn.BatchNorm1d):
    """Evaluation goes by the statistics of the last training pass.

    Every pass sees all training graphs, so these are whole; an average over past passes would lag
    behind the weights, above all while constraints shrink what is normalised. With fewer than two
    rows there is no variance: those pass by the statistics kept so far.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size, momentum=1.0)

    def forward(self, input: Tensor) -> Tensor:
        if self.training and input.shape[0] < 2:
            return functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)


class MLP(nn.Module):
    """Linear layers of the given sizes; norm, activation and dropout after all but the last."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str = "tanh",
        dropout: float = 0.0,
        norm: str = "none",
    ) -> None:
        super().__init__()
        assert len(sizes) >= 2, "an MLP needs the sizes of its input and its output"
        self.linears = nn.ModuleList(linear_layer(inner, outer) for inner, outer in pairwise(sizes))
        self.hidden_layers = nn.ModuleList(
            _hidden_layer(size, activation, dropout, norm) for size in sizes[1:-1]
        )

    @property
    def first(self) -> nn.Linear:
        layer = self.linears[0]
        assert isinstance(layer, nn.Linear)
        return layer

    @property
    def last(self) -> nn.Linear:
        layer = self.linears[-1]
        assert isinstance(layer, nn.Linear)
        return layer

    def hidden(self, first: Tensor) -> Tensor:
        """From the output of the first linear layer to the input of the last one."""
        values: Tensor = self.hidden_layers[0](first)
        for linear, layer in zip(self.linears[1:-1], self.hidden_layers[1:], strict=True):
            values = layer(linear(values))
        return values

    def after_first(self, first: Tensor) -> Tensor:
        """From the output of the first linear layer to the output."""
        return self.last(self.hidden(first)) if len(self.linears) > 1 else first

    def forward(self, x: Tensor) -> Tensor:
        return self.after_first(self.first(x))


def _hidden_layer(size: int, activation: str, dropout: float, norm: str) -> nn.Module:
    layers = [normalisation(norm, size), build_activation(activation), nn.Dropout(dropout)]
    return nn.Sequential(
        *(
            layer
            for layer in layers
            if not isinstance(layer, nn.Identity)
            and not (isinstance(layer, nn.Dropout) and layer.p == 0)
        )
    )
