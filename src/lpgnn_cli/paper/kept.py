"""Sweeps that `lpgnn report collect` keeps: one per line, as JSON, the newest of each question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.errors import UserError


@dataclass(frozen=True)
class KeptSweep:
    """What is reported of one sweep, and how it came to be."""

    name: str
    dataset: str
    metric: str
    combinations: int
    command: str
    started: float
    version: str
    git_commit: str | None
    versions: dict[str, str]

    @property
    def question(self) -> tuple[str, ...]:
        """The newest sweep of each is kept."""
        return self.dataset, self.name


S = TypeVar("S", bound=KeptSweep)


def read_kept(path: Path, kind: type[S]) -> list[S]:
    """Those that were collected, by dataset and name."""
    if not path.is_file():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return in_order(_from_plain(kind, json.loads(line)) for line in lines)
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is not a list of collected sweeps: restore the file, or delete it and collect "
            "again."
        ) from error


def keep_newest(path: Path, kind: type[S], sweeps: Sequence[S]) -> list[str]:
    """Keep the newest sweep of each question; the names of those that are new."""
    kept = {sweep.question: sweep for sweep in read_kept(path, kind)}
    new = []
    for sweep in sweeps:
        known = kept.get(sweep.question)
        if known is None or sweep.started > known.started:
            kept[sweep.question] = sweep
            new.append(sweep.name)
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(asdict(one), separators=(",", ":")) for one in in_order(kept.values())]
        write_atomically(path, "".join(f"{line}\n" for line in lines))
    return new


def in_order(sweeps: Iterable[S]) -> list[S]:
    return sorted(sweeps, key=lambda sweep: sweep.question)


def _from_plain(kind: type[S], plain: dict[str, Any]) -> S:
    lists = {key: tuple(value) for key, value in plain.items() if isinstance(value, list)}
    return kind(**{**plain, **lists})
