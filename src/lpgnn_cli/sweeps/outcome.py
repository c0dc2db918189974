"""What a sweep leaves behind when it ends: leaderboard, figures, summary and record; and its board
out of that."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lpgnn_cli.metrics import mean_of, std_of
from lpgnn_cli.runfolder import (
    DIVERGED,
    FAILED,
    FINISHED,
    HONEST,
    INTERRUPTED,
    OPTIMISTIC,
    RunFolder,
    RunRecord,
)
from lpgnn_cli.settings import read_flat_config
from lpgnn_cli.sweeps.board import Board
from lpgnn_cli.sweeps.figures import draw_sweep
from lpgnn_cli.sweeps.jobs import PRUNED, read_table
from lpgnn_cli.sweeps.leaderboard import command_line, write_leaderboard
from lpgnn_cli.sweeps.nested import NESTED, choose, write_nested
from lpgnn_cli.sweeps.nested import summary_of as nested_summary
from lpgnn_cli.sweeps.objective import AUTO

COMBINATIONS = "combinations"


def read_board(folder: Path) -> Board:
    """That of a sweep as its folder has it, whoever computes it."""
    run = RunFolder(folder)
    config = read_flat_config(run.config_path)
    board = Board(config.get("sweep.metric", AUTO))
    board.add(read_table(folder))
    board.refresh()
    board.drawn_from = int(run.read_summary().get(COMBINATIONS, 0))
    best_of = config.get("sweep.best_of", "null")
    board.best_of = None if best_of == "null" else best_of
    if config.get("protocol.name") == NESTED:
        records = [v.job.run.read_record() for v in board.candidates() if v.state == FINISHED]
        board.outer_folds = len({unit.fold for record in records for unit in record.units})
    return board


def write_results(
    folder: Path, record: RunRecord, board: Board, axes: Sequence[str]
) -> dict[str, Any]:
    """All of it, as the board is now; the summary."""
    write_leaderboard(board, axes, folder, record.name)
    draw_sweep(board, axes, folder / "figures", record.name)
    if board.outer_folds:
        write_nested(choose(board), board.judge(), axes, folder)
    bad = board.of_state(FAILED, DIVERGED)
    missing = len(board.views) - len(bad) - len(board.of_state(FINISHED, PRUNED))
    record.state = FAILED if bad else INTERRUPTED if missing else FINISHED
    record.reason = f"{len(bad)} of {len(board.views)} jobs failed" if bad else ""
    record.ended = time.time()
    if best := board.best():
        of_job = best.job.run.read_record()
        record.versions = of_job.versions
        if board.outer_folds:
            record.dataset_fingerprint = of_job.dataset_fingerprint
            record.split_fingerprint = of_job.split_fingerprint
    summary = summary_of(board)
    run = RunFolder(folder)
    run.write_summary(summary)
    run.write_record(record)
    return summary


def summary_of(board: Board) -> dict[str, Any]:
    """summary.json of the sweep: how many jobs, and the best one."""
    best = board.best()
    summary: dict[str, Any] = {
        "jobs": len(board.views),
        "jobs_finished": len(board.of_state(FINISHED)),
        "jobs_failed": len(board.of_state(FAILED, DIVERGED)),
        "seconds": sum(v.summary.seconds for v in board.views.values()),
    }
    if board.drawn_from:
        summary[COMBINATIONS] = board.drawn_from
    if best is not None:
        judge = best.summary.metric.name
        honest, optimistic = f"{HONEST}/{judge}", f"{OPTIMISTIC}/{judge}"
        # What outer folds choose by is no figure to report.
        names = () if board.outer_folds else (mean_of(honest), std_of(honest), mean_of(optimistic))
        summary |= {name: best.summary.value(name) for name in names}
        summary |= {"best/job": best.job.number, "best/command": command_line(best.job)}
        summary["best/figure"] = board.value(best)
    if board.outer_folds:
        summary |= nested_summary(choose(board), board.judge())
    return {k: v for k, v in summary.items() if not (isinstance(v, float) and math.isnan(v))}
