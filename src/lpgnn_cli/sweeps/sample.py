"""Which combinations of a grid are trained, where not all of them are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from hydra.core.override_parser.overrides_parser import OverridesParser

from lpgnn_cli.config.sweep import SweepSettings
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import count
from lpgnn_cli.runfolder import DIVERGED, FAILED, FINISHED
from lpgnn_cli.sweeps.jobs import PRUNED, find_sweep, read_table
from lpgnn_cli.sweeps.outcome import read_board

T = TypeVar("T")
Values = dict[str, str]
# A combination: its number in the grid, and its overrides.
Numbered = tuple[int, Sequence[str]]


def sampled(
    grid: Sequence[Numbered], settings: SweepSettings, axes: Sequence[str]
) -> list[Numbered]:
    """Those that the settings ask for, in their order."""
    if settings.best_of is None or settings.sample is None:
        return drawn(grid, settings.sample)
    best = best_combinations(settings.best_of, settings.sample, axes)
    chosen = [one for one in grid if axis_values(one[1], axes) in best]
    if len(chosen) < len(best):
        raise UserError(
            f"sweep.best_of={settings.best_of}: only {len(chosen)} of its best {len(best)} "
            "combinations are among those of this sweep; give both the same axes and values."
        )
    return chosen


def drawn(items: Sequence[T], wanted: int | None) -> list[T]:
    """So many of them in their order; a larger draw has those of a smaller one among its own."""
    if wanted is None:
        return list(items)
    shuffled = random.Random(0).sample(range(len(items)), len(items))
    return [items[i] for i in sorted(shuffled[:wanted])]


def best_combinations(name: str, wanted: int, axes: Sequence[str]) -> list[Values]:
    """What the best jobs of a sweep that has ended have on each axis."""
    folder, asked = find_sweep(name), f"sweep.best_of={name}"
    jobs = read_table(folder)
    if not jobs:
        raise UserError(f"{asked}: there is no such sweep, {folder} has no jobs.json.")
    if set(jobs[0].values) != set(axes):
        raise UserError(
            f"{asked} has the axes {', '.join(jobs[0].values)}, and this sweep {', '.join(axes)}: "
            "give both the same."
        )
    board = read_board(folder)
    ended = board.of_state(FINISHED, FAILED, DIVERGED, PRUNED)
    if len(ended) < len(board.views):
        raise UserError(
            f"{asked}: {count(len(board.views) - len(ended), 'job')} of it have not ended; let it "
            "run to its end first."
        )
    return [view.job.values for view in board.ranked()[:wanted]]


def axis_values(overrides: Sequence[str], axes: Sequence[str]) -> Values:
    """The value that a job has on each axis."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    values = {o.key_or_group: o.get_value_element_as_str() for o in parsed}
    return {axis: values[axis] for axis in axes if axis in values}
