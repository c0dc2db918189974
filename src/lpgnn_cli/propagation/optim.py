"""One optimiser for each player of the saddle-point search."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, optim

from lpgnn_cli.config.training import OptimConfig, SgdConfig

# In one pass over all that moves.
KERNELS: dict[type[optim.Optimizer], Callable[..., None]] = {
    optim.Adam: torch._fused_adam_,
    optim.AdamW: torch._fused_adamw_,
}


def _fused_step(optimiser: Any, kernel: Callable[..., None]) -> None:
    """What Adam's own step comes to where all is on one device and in one precision; that sorts
    tensors by both first, which takes as long as to move those of a small network."""
    for group in optimiser.param_groups:
        moved: list[Tensor] = []
        gradients: list[Tensor] = []
        means: list[Tensor] = []
        squares: list[Tensor] = []
        steps: list[Tensor] = []
        optimiser._init_group(group, moved, gradients, means, squares, [], steps)
        if not moved:
            continue
        torch._foreach_add_(steps, 1)
        beta1, beta2 = group["betas"]
        kernel(
            moved,
            gradients,
            means,
            squares,
            [],
            steps,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=group["maximize"],
        )


def _uncompiled(kind: type[optim.Optimizer]) -> type[optim.Optimizer]:
    """The same without what torch puts around it for its compiler and its profiler.

    The wrappers import torch._dynamo, which takes longer than torch itself, and on small data they
    take as long as the step.
    """
    inner_step = inspect.unwrap(kind.step)
    kernel = KERNELS.get(kind)

    def step(self: optim.Optimizer) -> None:
        with torch.no_grad():
            if kernel is not None and self.defaults["fused"]:
                _fused_step(self, kernel)
            else:
                inner_step(self)

    def zero_grad(self: optim.Optimizer) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    # Says that the profiler has had its turn.
    vars(step)["hooked"] = True
    wrapped = ("add_param_group", "load_state_dict", "state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    return type(kind.__name__, (kind,), {"step": step, "zero_grad": zero_grad, **methods})


OPTIMISERS: dict[str, type[optim.Optimizer]] = {
    "adam": _uncompiled(optim.Adam),
    "adamw": _uncompiled(optim.AdamW),
    "sgd": _uncompiled(optim.SGD),
    "rmsprop": _uncompiled(optim.RMSprop),
}
FUSED = ("adam", "adamw", "sgd")


def build_optimiser(
    config: OptimConfig,
    parameters: Iterable[Tensor],
    lr: float,
    *,
    weight_decay: float = 0.0,
    maximize: bool = False,
) -> optim.Optimizer:
    """The configured optimiser; weight decay is for theta alone, `maximize` for multipliers."""
    arguments: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay, "maximize": maximize}
    if isinstance(config, SgdConfig):
        arguments["momentum"] = config.momentum
    moved = list(parameters)
    # All of a step in one pass: a third of the time for the states of NCI1. RMSprop has none.
    if config.name in FUSED and all(p.device.type in ("cpu", "cuda") for p in moved):
        arguments["fused"] = True
    optimiser = OPTIMISERS[config.name](moved, **arguments)
    for group in optimiser.param_groups:
        group["base_lr"] = lr
    return optimiser


def step_decayed(optimiser: optim.Optimizer, share: float) -> None:
    """A step, and beside it a share of the values, times their learning rate, taken off; not of
    values that are fixed, such as an identity."""
    if share > 0:
        with torch.no_grad():
            for group in optimiser.param_groups:
                for parameter in group["params"]:
                    if parameter.requires_grad:
                        parameter.mul_(1 - share * group["lr"])
    optimiser.step()


def scale_lr(optimiser: optim.Optimizer, scale: float) -> None:
    """Every learning rate as configured, times `scale`."""
    for group in optimiser.param_groups:
        group["lr"] = group["base_lr"] * scale
