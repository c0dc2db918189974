"""`lpgnn sweep`: every combination of settings as a run of its own, and a leaderboard."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lpgnn_cli.config.hydra_internals import ConfigLoader
from lpgnn_cli.errors import RunFailed
from lpgnn_cli.runfolder import DIVERGED, FAILED, INTERRUPTED, RUNNING
from lpgnn_cli.screen import plain_console
from lpgnn_cli.signals import exit_code
from lpgnn_cli.sweeps.jobs import PENDING
from lpgnn_cli.sweeps.leaderboard import with_config_dir
from lpgnn_cli.sweeps.session import Session
from lpgnn_cli.sweeps.supervisor import Detached, DryRun


def sweep(loader: ConfigLoader, config_name: str, overrides: Sequence[str]) -> int:
    """Run every job that is not finished yet, report on all; 1 if any failed."""
    with Session.open(loader, config_name, overrides, plain_console()) as session:
        try:
            run_to_the_end(session)
        except KeyboardInterrupt as interruption:
            words = [*with_config_dir(loader.own_folder), *overrides]
            again = " ".join(["lpgnn sweep", *words])
            print(f"lpgnn: interrupted; the same command goes on: {again}", file=sys.stderr)
            return exit_code(interruption)
    return 0


def run_to_the_end(session: Session) -> None:
    """Run the jobs and report on all of them, however it ends; RunFailed if any is missing."""
    try:
        session.run()
    except DryRun:
        session.show_plan()
        return
    except Detached as detached:
        session.leave(detached.jobs)
        return
    except (KeyboardInterrupt, RunFailed):
        session.close()
        raise
    session.close()
    board = session.board
    bad, missing = board.of_state(FAILED, DIVERGED), board.of_state(PENDING, INTERRUPTED, RUNNING)
    if bad:
        raise RunFailed(
            f"{len(bad)} of {len(board.views)} jobs failed; sweep.retry_failed=true tries them "
            f"again. What was computed is in {session.folder}.",
            session.folder,
        )
    if missing:
        raise RunFailed(
            f"{len(missing)} of {len(board.views)} jobs did not run to their end.", session.folder
        )
