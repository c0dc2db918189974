"""Settings that most runs share are said once, in a line of their own before those of the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

SHARED, SETTINGS = "shared_settings", "settings"


def factored(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is shared, then the runs with what they have otherwise; None: a run lacks a setting."""
    names = dict.fromkeys(name for run in runs for name in run[SETTINGS])
    shared = {}
    for name in names:
        value, times = Counter(run[SETTINGS].get(name) for run in runs).most_common(1)[0]
        if value is not None and times > 1:
            shared[name] = value
    return [{SHARED: shared}, *({**run, SETTINGS: _own(run[SETTINGS], shared)} for run in runs)]


def _own(settings: dict[str, str], shared: dict[str, str]) -> dict[str, str | None]:
    names = dict.fromkeys([*settings, *shared])
    return {name: settings.get(name) for name in names if settings.get(name) != shared.get(name)}


def whole(run: dict[str, Any], shared: dict[str, str]) -> dict[str, Any]:
    """A run with all its settings."""
    settings = {**shared, **run[SETTINGS]}
    return {**run, SETTINGS: {k: value for k, value in settings.items() if value is not None}}
