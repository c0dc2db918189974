"""`lpgnn status SWEEP`: how far a sweep is, also one that was left to a cluster."""

from __future__ import annotations

import argparse

from lpgnn_cli.errors import UserError
from lpgnn_cli.runfolder import DIVERGED, FAILED, RunFolder
from lpgnn_cli.screen import plain_console
from lpgnn_cli.sweeps.display import show_results, show_status
from lpgnn_cli.sweeps.jobs import find_sweep, read_table
from lpgnn_cli.sweeps.outcome import read_board, write_results
from lpgnn_cli.sweeps.submitted import in_queue, settle_lost


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="lpgnn status",
        description="How far a sweep is; once all its jobs have ended, its results.",
    )
    parser.add_argument("sweep", metavar="SWEEP", help="name of a sweep, or its folder")
    given = parser.parse_args(argv).sweep
    folder = find_sweep(given)
    jobs = read_table(folder)
    if not jobs:
        raise UserError(f"there is no sweep {given}: {folder} has no jobs.json.")
    run = RunFolder.open(folder)
    settle_lost(folder, jobs)
    board = read_board(folder)
    axes = list(jobs[0].values)
    console = plain_console()
    # A sweep that goes on writes its results itself.
    if not run.is_held:
        write_results(folder, run.read_record(), board, axes)
    show_status(board, console, in_queue(folder) or {})
    show_results(board, axes, console, folder)
    return 1 if board.of_state(FAILED, DIVERGED) else 0
