"""`lpgnn sync <run folder>...`: send to MLflow what it does not have yet."""

from __future__ import annotations

import argparse

from lpgnn_cli.errors import RunFailed
from lpgnn_cli.runfolder import RUNNING, RunFolder
from lpgnn_cli.screen import plain_console
from lpgnn_cli.settings import read_flat_config
from lpgnn_cli.tracking.state import read_state
from lpgnn_cli.tracking.store import resolve_uri

EXPERIMENT = "lpgnn"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="lpgnn sync", description="Send to MLflow what it does not have yet of these runs."
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="run folder")
    parser.add_argument("--uri", help="another store than the one the run was tracked in")
    arguments = parser.parse_args(argv)
    runs = [RunFolder.open(folder) for folder in arguments.folders]
    console = plain_console()
    failures = []
    for run in runs:
        uri, experiment = _target(run, arguments.uri)
        try:
            with console.status(f"sending {run.path} to {uri}"):
                done = _send(run, uri, experiment)
        except Exception as error:
            state = read_state(run)
            reason = state.reason if state and state.reason else str(error)
            failures.append(f"{run.path} could not be sent to {uri}: {reason}")
        else:
            console.print(f"{run.path}: {done}", highlight=False, soft_wrap=True)
    if failures:
        raise RunFailed("; ".join(failures))
    return 0


def _target(run: RunFolder, uri: str | None) -> tuple[str, str]:
    """Where the run was tracked, else where its config says."""
    state, config = read_state(run), read_flat_config(run.config_path)
    configured = config.get("tracking.uri")
    experiment = state.experiment if state else config.get("tracking.experiment", EXPERIMENT)
    if uri is None and state is not None:
        return state.uri, experiment
    return resolve_uri(uri or (None if configured == "null" else configured)), experiment


def _send(run: RunFolder, uri: str, experiment: str) -> str:
    from lpgnn_cli.sweeps.job_mirrors import mirror_of

    running = run.actual_state(run.read_record()) == RUNNING
    sent = mirror_of(run, uri, experiment).send(ended=not running)
    if not sent.metrics and not sent.artifacts:
        return "MLflow already has everything."
    note = " so far: the run goes on" if running else ""
    return f"sent {sent.metrics:,} metric values and {sent.artifacts:,} files{note}."
