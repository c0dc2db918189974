"""How a setting states its type, its range and whether it matters for results.

The fields of lpgnn itself have no default: the default is the commented line in the YAML file of
the group, so there is one place to read and one place to change. A plug-in, which has no YAML file,
says `default` and `help` instead.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
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

    def missed_by(self, value: float) -> str:
        """What a number that is not admitted should be."""
        if isinstance(value, int) and self.low is not None and value < self.low:
            return str(Range(self.low, low_open=self.low_open))
        return str(self)

    def __str__(self) -> str:
        parts = []
        if self.low is not None:
            parts.append(
                f"greater than {self.low:g}" if self.low_open else f"at least {self.low:g}"
            )
        if self.high is not None:
            parts.append(f"less than {self.high:g}" if self.high_open else f"at most {self.high:g}")
        return " and ".join(parts)


# The values that a setting accepts, or how to find them for the schema that has the setting.
Choices = tuple[str, ...] | Callable[[type], tuple[str, ...]]


def setting(
    low: float | None = None,
    high: float | None = None,
    *,
    low_open: bool = False,
    high_open: bool = False,
    choices: Choices = (),
    affects_results: bool = True,
    for_users: bool = True,
    default: Any = MISSING,
    help: str = "",
) -> Any:
    """A setting, with the range or the choices that `config.check` enforces.

    One that does not affect results changes how a run looks, where it is kept or how fast it is;
    one that is not for users is there only because Hydra wants it, and cannot be set.
    """
    metadata: dict[str, Any] = {"affects_results": affects_results, "help": help}
    if not for_users:
        metadata["for_users"] = False
    if low is not None or high is not None:
        metadata["range"] = Range(low, high, low_open, high_open)
    if choices:
        metadata["choices"] = choices
    if isinstance(default, list | dict):
        return field(default_factory=lambda: copy.deepcopy(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def positive() -> Any:
    return setting(low=0, low_open=True)
