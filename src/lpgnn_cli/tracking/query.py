"""Choosing past runs by any parameter or metric: `dataset=mutag`, `cv/accuracy_mean>0.85`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lpgnn_cli.config.suggest import did_you_mean
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import larger_is_better
from lpgnn_cli.tracking.pastruns import PastRun

_OWN = ("name", "state", "folder", "started", "synced")
_ORDER: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_FILTER = re.compile(r"(?P<key>[^=<>!]+)(?P<operator>>=|<=|!=|=|>|<)(?P<value>.*)")


@dataclass(frozen=True)
class Condition:
    """One `key=value`, `key!=value` or `key>number`."""

    key: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        match = _FILTER.fullmatch(text)
        if match is None:
            raise UserError(f"{text} is no filter; write key=value or key>number.")
        condition = cls(**{name: part.strip() for name, part in match.groupdict().items()})
        if condition.operator in _ORDER and _number(condition.value) is None:
            raise UserError(f"{text} compares with {condition.value}, which is not a number.")
        return condition

    def admits(self, run: PastRun) -> bool:
        if self.operator in _ORDER:
            there, limit = _number(value_of(run, self.key)), _number(self.value)
            return there is not None and limit is not None and _ORDER[self.operator](there, limit)
        return self._equals(run) == (self.operator == "=")

    def _equals(self, run: PastRun) -> bool:
        # A group's choice (dataset=imdb_b) may differ from the name it stands for (IMDB-BINARY).
        if f"{self.key}={self.value}" in run.argv:
            return True
        # `state` is how a run ended, and also a setting.
        return any(
            _same(text, self.value) for text in (value_of(run, self.key), run.params.get(self.key))
        )


def value_of(run: PastRun, key: str) -> str | None:
    """A metric, a parameter, the name of a group's choice, or what every run has."""
    if key in run.metrics:
        return repr(run.metrics[key])
    if key in _OWN:
        return str(getattr(run, key))
    return run.params.get(key, run.params.get(f"{key}.name"))


def select(
    runs: Sequence[PastRun], conditions: Iterable[Condition], sort: str | None, reverse: bool
) -> list[PastRun]:
    """The runs that meet all conditions: the newest first, or in the order of `sort`."""
    conditions = list(conditions)
    for key in [c.key for c in conditions] + ([sort] if sort else []):
        _check_key(runs, key)
    chosen = [run for run in runs if all(c.admits(run) for c in conditions)]
    return _sorted(chosen, sort or "started", reverse)


def _sorted(runs: Sequence[PastRun], key: str, reverse: bool) -> list[PastRun]:
    """The best metric and the newest run first, parameters from A to Z; those without it last."""
    is_metric = any(key in run.metrics for run in runs)
    descending = key == "started" or (is_metric and larger_is_better(key))
    having = [run for run in runs if value_of(run, key) is not None]
    without = [run for run in runs if value_of(run, key) is None]

    def rank(run: PastRun) -> tuple[bool, float, str]:
        text = value_of(run, key) or ""
        number = _number(text)
        return (number is None, number or 0.0, text)

    return sorted(having, key=rank, reverse=descending != reverse) + without


def _check_key(runs: Sequence[PastRun], key: str) -> None:
    if not runs or any(value_of(run, key) is not None for run in runs):
        return
    known = dict.fromkeys(_OWN)
    for run in runs:
        known |= dict.fromkeys([*run.metrics, *run.params])
        known |= {k.removesuffix(".name"): None for k in run.params if k.endswith(".name")}
    raise UserError(f"no run has a parameter or metric {key}. {did_you_mean(key, known)}")


def _same(there: str | None, value: str) -> bool:
    if there is None:
        return False
    number = _number(value)
    return there.casefold() == value.casefold() or (number is not None and number == _number(there))


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
