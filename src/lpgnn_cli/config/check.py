"""Ranges, choices and agreements between settings: checked before any work is done."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from omegaconf import MISSING

from lpgnn_cli.config.fields import Choices, Range
from lpgnn_cli.config.model import AndersonConfig, GatConfig, IterationConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.suggest import did_you_mean, no_such_setting
from lpgnn_cli.config.training import HoldoutConfig, MasksConfig
from lpgnn_cli.errors import UserError
from lpgnn_cli.names import checked_name

# No count of anything is larger.
MOST = 4_000_000_000


def check(config: object) -> None:
    """Raise a `UserError` that names the first setting whose value cannot be used."""
    _check_names(config)
    if (name := getattr(config, "name", None)) is not None:
        checked_name("name", name)
    _check_values(config, "")
    for _, value in settings(config):
        for sentence in getattr(value, "disagreements", tuple)():
            raise UserError(sentence)
    if isinstance(config, TrainConfig):
        for agreement in AGREEMENTS:
            for sentence in agreement(config):
                raise UserError(sentence)


def settings(config: object, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key, groups included, with its value."""
    assert is_dataclass(config)
    for name, value in vars(config).items():
        yield f"{prefix}{name}", value
        if is_dataclass(value):
            yield from settings(value, f"{prefix}{name}.")


def _check_names(config: object) -> None:
    """Refuse what `+key=value` has added, which no part of the program would read."""
    declared = set(_declared(config, ""))
    for key, value in settings(config):
        if key not in declared:
            raise UserError(no_such_setting(key, declared))
        if value == MISSING:
            raise UserError(f"{key} has no value: add {key}=...")


def _declared(config: object, prefix: str) -> Iterator[str]:
    assert is_dataclass(config)
    for field in fields(config):
        yield f"{prefix}{field.name}"
        value = getattr(config, field.name)
        if is_dataclass(value):
            yield from _declared(value, f"{prefix}{field.name}.")


def _check_values(config: object, prefix: str) -> None:
    assert is_dataclass(config)
    for field in fields(config):
        key, value = f"{prefix}{field.name}", getattr(config, field.name)
        if is_dataclass(value):
            _check_values(value, f"{key}.")
        elif isinstance(value, list):
            for position, entry in enumerate(value):
                _check_value(f"{key}[{position}]", entry, field.metadata, type(config))
        elif value is not None:
            _check_value(key, value, field.metadata, type(config))


def _check_value(key: str, value: Any, metadata: Mapping[str, Any], schema: type) -> None:
    limits: Range | None = metadata.get("range")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{key} must be a finite number, not {value}.")
    if isinstance(value, int) and abs(value) > MOST:
        raise UserError(f"{key} must be at most {MOST:,}, not {str(value)[:40]}.")
    if limits is not None and not isinstance(value, int | float):
        # An interpolation may bring anything where a list is declared.
        raise UserError(f"{key} must be made of numbers, not of {str(value)[:40]!r}.")
    if limits is not None and not limits.admits(value):
        raise UserError(f"{key} must be {limits.missed_by(value)}, not {value:g}.")
    choices: Choices = metadata.get("choices", ())
    if callable(choices):
        choices = choices(schema)
    if choices and value not in choices:
        hint = did_you_mean(str(value), choices)
        allowed = f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0]
        raise UserError(f"{key} must be {allowed}, not {value}. {hint}")


def _state_sizes(config: TrainConfig) -> Iterator[str]:
    sizes, layers = len(config.state), config.layers
    if not sizes:
        yield "state has no entries: give one size for all layers, or one for each of them."
    elif layers is None and sizes > 1:
        yield f"state has {sizes} entries, but layers=null leaves K open: say layers={sizes}."
    elif sizes not in (1, layers):
        wanted = "one state size" if layers == 1 else f"one state size or {layers} of them"
        yield f"state has {sizes} entries, but layers={layers} needs {wanted}."


def _workers(config: TrainConfig) -> Iterator[str]:
    workers = config.protocol.workers
    if workers != "auto" and not re.fullmatch(r"[1-9]\d{0,3}", workers):
        yield f"protocol.workers must be auto or a number from 1 to 9999, not {workers[:40]}."


def _device(config: TrainConfig) -> Iterator[str]:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", config.device):
        yield f"device must be auto, cpu, cuda, cuda:N or mps, not {config.device}."


def _holdout_shares(config: TrainConfig) -> Iterator[str]:
    protocol = config.protocol
    if not isinstance(protocol, HoldoutConfig | MasksConfig):
        return
    if (protocol.validation or 0) + (protocol.test or 0) >= 1:
        yield "protocol.validation and protocol.test leave nothing to train on: lower one of them."


def _multipliers(config: TrainConfig) -> Iterator[str]:
    if config.g.name == "norm1_eps" and getattr(config.propagation, "multiplier", "") == "element":
        yield "g=norm1_eps has one value per node: it needs propagation.multiplier=node."


def _heads(config: TrainConfig) -> Iterator[str]:
    aggregator = config.aggregator
    if not isinstance(aggregator, GatConfig) or aggregator.combine != "concat":
        return
    for size in config.state:
        if size % aggregator.heads:
            yield (
                f"aggregator.combine=concat divides a state of {size} among "
                f"aggregator.heads={aggregator.heads}: give state a multiple of it."
            )


def _node_batches(config: TrainConfig) -> Iterator[str]:
    if config.optim.batch_nodes is None:
        return
    if config.optim.batch_graphs is not None:
        yield "optim.batch_nodes and optim.batch_graphs exclude each other: set one of them."
    if not config.protocol.of_nodes:
        yield (
            f"optim.batch_nodes is for nodes of one graph, which protocol={config.protocol.name} "
            "does not divide: take protocol=masks or transductive, or optim.batch_graphs."
        )
    yield from config.propagation.against_node_batches()
    if config.readout.neighbours and config.readout.source == "transition":
        yield (
            "optim.batch_nodes with readout.neighbours would need the neighbours of neighbours to "
            "read their transitions: take readout.source=state."
        )
    if not isinstance(config.inference, IterationConfig) or isinstance(
        config.inference, AndersonConfig
    ):
        yield (
            f"optim.batch_nodes is not for inference={config.inference.name}: take "
            "inference=fixed_point."
        )


AGREEMENTS: tuple[Callable[[TrainConfig], Iterator[str]], ...] = (
    _state_sizes,
    _workers,
    _device,
    _holdout_shares,
    _multipliers,
    _heads,
    _node_batches,
)
