"""Multi-layer perceptrons, open between their first and their last linear layer.

Transitions apply the first layer before rows are gathered on arcs and the last one after they are
summed, which is exact and cheaper: hence `hidden` and `last` beside the usual `forward`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from lpgnn_cli.model.activations import activation as build_activation


def normalisation(name: str, size: int) -> nn.Module:
    if name == "batch":
        return BatchNorm(size)
    if name == "layer":
        return nn.LayerNorm(size)
    if name == "unit":
        return UnitNorm()
    assert name == "none", name
    return nn.Identity()


def linear_layer(in_size: int, out_size: int, bias: bool = True) -> nn.Linear:
    """torch's own layer and initialisation, without its warning where there is no input."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        return nn.Linear(in_size, out_size, bias=bias)


class UnitNorm(nn.Module):
    """x / |x|: the direction of a row, however weak it is; zero where there is none."""

    def forward(self, x: Tensor) -> Tensor:
        there, length = row_lengths(x.detach())
        # Scaled once more by what has a gradient; ones stand for rows without a direction.
        scaled = torch.where(there, x / length, 1.0)
        return torch.where(there, scaled / scaled.norm(dim=1, keepdim=True), 0.0)


def row_lengths(x: Tensor) -> tuple[Tensor, Tensor]:
    """(N, 1) whether there is anything in a row, and its length; 1 where there is nothing.

    Squares of 1e-30 would vanish in single precision. In double precision they do not, and where
    there is no higher one a row is divided by its largest element first, which takes three times as
    long. What is so small that its inverse might be no number is nothing.
    """
    if x.is_cpu and x.dtype is torch.float32:
        length = torch.linalg.vector_norm(x, dim=1, keepdim=True, dtype=torch.float64).to(x.dtype)
    else:
        largest = x.abs().amax(dim=1, keepdim=True)
        length = largest * (x / torch.where(largest > 0, largest, 1.0)).norm(dim=1, keepdim=True)
    there = length > torch.finfo(x.dtype).tiny ** 0.75
    return there, torch.where(there, length, 1.0)


class BatchNorm(nn.BatchNorm1d):
    """Evaluation goes by statistics that are taken for it: see `taking_statistics`.

    With fewer than two rows there is no variance: those pass by the statistics kept so far.
    """

    def __init__(self, size: int) -> None:
        # Those of the last pass: it sees all training graphs.
        super().__init__(size, momentum=1.0)
        self.pool: Pool | None = None

    def forward(self, input: Tensor) -> Tensor:
        if self.pool is not None:
            self.pool.add(input)
        if self.training and input.shape[0] < 2:
            return functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)


@contextmanager
def taking_statistics(network: nn.Module) -> Iterator[None]:
    """Inside, the last pass over the training graphs makes the statistics that evaluation goes by.

    Those of a training pass belong to the weights before its step. Evaluated with the weights after
    it they are stale, and a sum over the nodes of a graph makes that as many times worse.
    """
    network.eval()
    for module in network.modules():
        if isinstance(module, BatchNorm):
            module.train()
    yield
    network.eval()


@contextmanager
def pooled_statistics(network: nn.Module) -> Iterator[None]:
    """Inside, passes over pieces of the training graphs make those statistics together."""
    norms = [module for module in network.modules() if isinstance(module, BatchNorm)]
    for module in norms:
        module.pool = Pool()
    with taking_statistics(network):
        yield
    for module in norms:
        assert module.pool is not None
        module.pool.write(module)
        module.pool = None


class Pool:
    """Numbers of rows, means and variances of several pieces."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, Tensor, Tensor]] = []

    def add(self, rows: Tensor) -> None:
        rows = rows.detach()
        self.pieces.append((len(rows), rows.mean(dim=0), rows.var(dim=0, correction=0)))

    def write(self, norm: BatchNorm) -> None:
        """The statistics of all rows, as if they had come at once."""
        assert norm.running_mean is not None
        assert norm.running_var is not None
        count = sum(rows for rows, _, _ in self.pieces)
        if count < 2:
            return
        rows, means, variances = zip(*self.pieces, strict=True)
        share = means[0].new_tensor(rows)[:, None]
        mean = (share * torch.stack(means)).sum(dim=0) / count
        spread = torch.stack(variances) + (torch.stack(means) - mean).square()
        norm.running_mean.copy_(mean)
        norm.running_var.copy_((share * spread).sum(dim=0) / (count - 1))


class MLP(nn.Module):
    """Linear layers of the given sizes; norm, activation and dropout after all but the last."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str = "tanh",
        dropout: float = 0.0,
        norm: str = "none",
        bias: bool = True,
    ) -> None:
        super().__init__()
        assert len(sizes) >= 2, "an MLP needs the sizes of its input and its output"
        self.linears = nn.ModuleList(linear_layer(*ends, bias=bias) for ends in pairwise(sizes))
        self.hidden_layers = nn.ModuleList(
            _hidden_layer(size, activation, dropout, norm) for size in sizes[1:-1]
        )

    @cached_property
    def layers(self) -> list[nn.Linear]:
        """All linear layers, first to last: indexing torch's own list is slow."""
        return [layer for layer in self.linears if isinstance(layer, nn.Linear)]

    @property
    def weights(self) -> list[Tensor]:
        """Of all linear layers, first to last."""
        return [layer.weight for layer in self.layers]

    @property
    def first(self) -> nn.Linear:
        return self.layers[0]

    @property
    def last(self) -> nn.Linear:
        return self.layers[-1]

    def hidden(self, first: Tensor) -> Tensor:
        """From the output of the first linear layer to the input of the last one."""
        inner = list(self.hidden_layers)
        values: Tensor = inner[0](first)
        for linear, layer in zip(self.layers[1:-1], inner[1:], strict=True):
            values = layer(linear(values))
        return values

    def after_first(self, first: Tensor) -> Tensor:
        """From the output of the first linear layer to the output."""
        return self.last(self.hidden(first)) if len(self.layers) > 1 else first

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
