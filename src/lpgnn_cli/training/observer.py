"""Who may watch a run: the training loop tells, observers never reach back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lpgnn_cli.runfolder import RunFolder, Unit, UnitResult


class Observer(Protocol):
    """Called in the parent process only, in the order things happen."""

    def run_started(self, run: RunFolder, units: Sequence[Unit], epochs: int) -> None: ...

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None: ...

    def unit_ended(self, unit: str, result: UnitResult) -> None: ...

    def run_ended(self, run: RunFolder, summary: Mapping[str, Any]) -> None: ...
