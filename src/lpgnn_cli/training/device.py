"""Where a unit computes, and in which precision."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.errors import UserError

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bf16": torch.float32}


def resolve_device(name: str) -> torch.device:
    """The device a user asked for, or the best there is for `auto`."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if not re.fullmatch(r"cpu|mps|cuda(:\d+)?", name):
        raise UserError(f"device={name} is not known; use auto, cpu, cuda, cuda:N or mps.")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device={name}: torch finds no CUDA device here; use device=cpu.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        last = torch.cuda.device_count() - 1
        raise UserError(f"device={name}: the CUDA devices here go from cuda:0 to cuda:{last}.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError("device=mps: torch finds no Metal device here; use device=cpu.")
    return device


def check_precision(config: TrainConfig, device: torch.device) -> None:
    if config.precision == "bf16" and device.type != "cuda":
        raise UserError(f"precision=bf16 needs a CUDA device, not {device}; use precision=float32.")
    if config.precision == "float64" and device.type == "mps":
        raise UserError("precision=float64 is not offered by Metal; use precision=float32.")


def computing_clock(device: torch.device, threads: int) -> Callable[[], float]:
    """Seconds of computing: on one thread those of the processor, which do not grow when other work
    shares it; elsewhere they would not be told from waiting, and those of the wall are taken."""
    return time.process_time if device.type == "cpu" and threads == 1 else time.perf_counter


def autocast(config: TrainConfig, device: torch.device) -> AbstractContextManager[object]:
    """bf16 autocast where it was asked for."""
    if config.precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()
