"""`lpgnn ui`: the MLflow dashboard on the project's store, on this machine only."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import webbrowser
from collections.abc import Iterator
from typing import IO

from rich.console import Console

from lpgnn_cli.credentials import restore
from lpgnn_cli.errors import RunFailed, UserError
from lpgnn_cli.screen import plain_console
from lpgnn_cli.signals import Interruption, exit_code, interrupting
from lpgnn_cli.tracking import view
from lpgnn_cli.tracking.store import artifact_root, existing_uri, find_experiment, sqlite_path

HOST = "127.0.0.1"
PORT = 5000
EXPERIMENT = "lpgnn"
# It usually answers within 20 to 40 seconds.
PATIENCE = 180.0
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Eight more processes, for jobs that a dashboard of ours never runs.
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="lpgnn ui", description="Open the MLflow dashboard; Ctrl-C stops it."
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"default: {PORT}")
    parser.add_argument("--uri", help="store to show; default: as for `lpgnn train`")
    parser.add_argument("--experiment", default=EXPERIMENT, help=f"default: {EXPERIMENT}")
    parser.add_argument("--no-browser", action="store_true", help="print the address alone")
    arguments = parser.parse_args(argv)
    uri = existing_uri(arguments.uri)
    console = plain_console()
    browse = not arguments.no_browser and _has_screen(console)
    if uri.startswith(("http://", "https://")):
        page = _first_page(uri, uri, arguments.experiment)
        console.print(f"The tracking server is a dashboard itself: {page}", highlight=False)
        if browse:
            webbrowser.open(page)
        return 0
    port = _free_port(arguments.port, console)
    with interrupting(), tempfile.TemporaryFile("w+") as log, _server(uri, port, log) as server:
        try:
            with console.status("the dashboard is starting (20 to 40 seconds)"):
                if not console.is_terminal:
                    console.print("The dashboard is starting (20 to 40 seconds).")
                _wait_until_it_answers(server, port, log)
                page = _first_page(f"http://{HOST}:{port}", uri, arguments.experiment)
            console.print(f"Dashboard: {page}  (Ctrl-C stops it)", highlight=False, soft_wrap=True)
            if browse:
                webbrowser.open(page)
            server.wait()
            raise RunFailed(f"the dashboard ended by itself: {_last_words(log)}")
        except Interruption as interruption:
            console.print("The dashboard is stopped.")
            asked = interruption.number == signal.SIGINT
            return 0 if asked else exit_code(interruption)


def _first_page(server: str, uri: str, experiment: str) -> str:
    """The table of runs; of a store that has none, or cannot be asked, the server's own page."""
    try:
        found = find_experiment(uri, experiment)
    except Exception:
        found = None
    return server if found is None else view.address(server, found)


def _has_screen(console: Console) -> bool:
    """Where there is none, a browser for the terminal would take it over."""
    return console.is_terminal and (
        sys.platform == "darwin" or bool(os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"})
    )


def _free_port(wished: int, console: Console) -> int:
    if not 0 < wished < 65536:
        raise UserError(f"--port must be between 1 and 65535, not {wished}.")
    for port in (wished, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            found = int(probe.getsockname()[1])
        if found != wished:
            console.print(f"Port {wished} is taken: using {found}.", highlight=False)
        return found
    raise UserError(f"no port is free on {HOST}.")


@contextlib.contextmanager
def _server(uri: str, port: int, log: IO[str]) -> Iterator[subprocess.Popen[bytes]]:
    """`mlflow server` behind a guard, so that it outlives neither the block nor this process."""
    command = [sys.executable, "-m", "lpgnn_cli.guard"]
    command += [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port)]
    command += ["--workers", "1"]
    database = sqlite_path(uri)
    if database is not None:
        # Else it would make a folder of its own where it is started.
        command += ["--default-artifact-root", artifact_root(database).as_uri()]
        command += ["--artifacts-destination", artifact_root(database).as_uri()]
    server = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        start_new_session=True,
        # Not among its arguments, which everybody on this machine can read.
        env={**ENVIRONMENT, **os.environ, "MLFLOW_BACKEND_STORE_URI": restore(uri)},
    )
    try:
        yield server
    finally:
        _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> None:
    """The guard ends the server when nobody holds its input any more."""
    assert server.stdin is not None
    server.stdin.close()
    server.wait()


def _wait_until_it_answers(server: subprocess.Popen[bytes], port: int, log: IO[str]) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RunFailed(f"the dashboard did not start: {_last_words(log)}")
        try:
            with direct.open(f"http://{HOST}:{port}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.25)
    raise RunFailed(f"the dashboard does not answer after {PATIENCE:.0f} s: {_last_words(log)}")


def _last_words(log: IO[str]) -> str:
    log.seek(0)
    lines = [line.strip() for line in log if line.strip()]
    return lines[-1] if lines else "it said nothing."
