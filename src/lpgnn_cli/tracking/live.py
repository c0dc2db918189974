"""The parent's side of live tracking: starts the follower, tells it the end, passes on its trouble.

Nothing of mlflow is imported here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lpgnn_cli.config.tracking import MlflowConfig, TrackingConfig
from lpgnn_cli.runfolder import RunFolder, Unit, UnitResult
from lpgnn_cli.tracking import state as tracking_state
from lpgnn_cli.tracking.store import resolve_uri

CHECK_EVERY = 2.0
# Seconds without any progress of the follower before the end of a run stops waiting for it, and
# seconds altogether where it has said that the store cannot be reached.
PATIENCE = 120.0
PATIENCE_IN_TROUBLE = 20.0

Say = Callable[[str], None]


def _say_on_stderr(text: str) -> None:
    print(f"lpgnn: {text}", file=sys.stderr, flush=True)


def start(
    config: TrackingConfig,
    run: RunFolder,
    say: Say = _say_on_stderr,
    follower: str = "lpgnn_cli.tracking.follow",
) -> LiveTracking | None:
    """Begins to mirror the run, whose `run.json` is there; None where tracking is off.

    `say` shows one sentence to the user in the midst of whatever else is on the screen. `follower`
    names the module that is run to send the folder.
    """
    if not isinstance(config, MlflowConfig):
        return None
    return LiveTracking(config, run, say, follower)


class LiveTracking:
    """An Observer: call `run_ended` when the folder is complete, figures and all."""

    def __init__(self, config: MlflowConfig, run: RunFolder, say: Say, follower: str) -> None:
        self._run = run
        self._say = say
        self._uri = resolve_uri(config.uri)
        self._warned = False
        self._next_check = time.monotonic() + CHECK_EVERY
        self._log = (run.path / "tracking.log").open("w", encoding="utf-8")
        arguments = [str(run.path), self._uri, config.experiment]
        self._process = subprocess.Popen(
            [sys.executable, "-m", follower, *arguments],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            # Ctrl-C is for training; the follower is told the end when the folder is complete.
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def run_started(self, run: RunFolder, units: Sequence[Unit], epochs: int) -> None:
        pass

    def epoch_done(self, unit: str, epoch: int, metrics: Mapping[str, float]) -> None:
        if not self._warned and time.monotonic() >= self._next_check:
            self._warn_of_trouble()
            self._next_check = time.monotonic() + CHECK_EVERY

    def unit_ended(self, unit: str, result: UnitResult) -> None:
        pass

    def run_ended(self, run: RunFolder, summary: Mapping[str, Any]) -> None:
        """Has the follower send the rest, and waits for it as long as it gets on.

        Ctrl-C ends the waiting, no more: the run itself is done.
        """
        from rich.console import Console  # The follower, which imports this package, needs none.

        self._tell_the_end()
        try:
            # A notebook would have it drawn by ipywidgets, which may not be there.
            with Console(stderr=True, force_jupyter=False).status("sending the rest to MLflow"):
                complete = self._wait()
        except KeyboardInterrupt:
            complete = False
        finally:
            self._stop()
        if not complete:
            self._say(
                f"MLflow at {self._uri} does not have all of this run{self._reason()}; "
                f"when it can be reached, send the rest with: lpgnn sync {self._run.path}"
            )

    def _warn_of_trouble(self) -> None:
        if self._process.poll() is not None or self._is_in_trouble():
            self._warned = True
            self._say(
                f"MLflow at {self._uri} cannot be reached{self._reason()}; training goes on, "
                "the run folder has everything."
            )

    def _is_in_trouble(self) -> bool:
        state = tracking_state.read_state(self._run)
        return state is not None and state.state != tracking_state.OK

    def _reason(self) -> str:
        state = tracking_state.read_state(self._run)
        return f" ({state.reason})" if state and state.reason else ""

    def _tell_the_end(self) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(b"ended\n")
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # It has died: `_wait` will tell.

    def _wait(self) -> bool:
        ended = since = time.monotonic()
        progress = self._progress()
        while time.monotonic() - since < PATIENCE:
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(timeout=0.5) == 0
            if self._is_in_trouble():
                if time.monotonic() - ended > PATIENCE_IN_TROUBLE:
                    return False
            elif self._progress() != progress:
                progress, since = self._progress(), time.monotonic()
        return False

    def _progress(self) -> int:
        path = self._run.path / "tracking.json"
        return path.stat().st_mtime_ns if path.is_file() else 0

    def _stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._log.close()
        log = self._run.path / "tracking.log"
        if log.is_file() and not log.stat().st_size:
            log.unlink()
