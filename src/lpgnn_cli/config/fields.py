"""How a setting states its type and range; its value and its description live in `conf/`.

A schema field has a type and a range and no default: the default is the commented line in the
YAML file of its group, so there is one place to read and one place to change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING


@dataclass(frozen=True)
class Range:
    """The numbers a setting accepts; for lists it holds for every entry."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    def admits(self, value: float) -> bool:
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        return not (
            self.high is not None and (value > self.high or (self.high_open and value == self.high))
        )

    def __str__(self) -> str:
        parts = []
        if self.low is not None:
            parts.append(
                f"greater than {self.low:g}" if self.low_open else f"at least {self.low:g}"
            )
        if self.high is not None:
            parts.append(f"less than {self.high:g}" if self.high_open else f"at most {self.high:g}")
        return " and ".join(parts)


def setting(
    low: float | None = None,
    high: float | None = None,
    *,
    low_open: bool = False,
    high_open: bool = False,
    choices: tuple[str, ...] = (),
) -> Any:
    """A mandatory setting, with the range or the choices that `config.check` enforces."""
    metadata: dict[str, Any] = {}
    if low is not None or high is not None:
        metadata["range"] = Range(low, high, low_open, high_open)
    if choices:
        metadata["choices"] = choices
    return field(default=MISSING, metadata=metadata)


def positive() -> Any:
    return setting(low=0, low_open=True)
