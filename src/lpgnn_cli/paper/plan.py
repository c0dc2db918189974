"""What is still to be run for the tables, how long it may take, and the commands that run it.

Sweeps run it: they take over what has finished, resume what was interrupted, and fail one by one.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lpgnn_cli.config.variants import UNCHANGED
from lpgnn_cli.paper.estimate import Estimate, Rates
from lpgnn_cli.paper.fair import DATASETS, MODELS, combinations, words_of
from lpgnn_cli.paper.nested import NestedSweep
from lpgnn_cli.paper.presets import compose_ahead, composed_settings, preset_settings
from lpgnn_cli.paper.reference import Preset, reference_tables
from lpgnn_cli.paper.runs import PresetRun, newest_match


@dataclass(frozen=True)
class Planned:
    """What the tables lack; no estimate where nothing was ever collected."""

    command: str
    estimate: Estimate | None


def missing_runs(runs: Sequence[PresetRun]) -> list[Preset]:
    """One per empty cell, in the order of the tables; any preset of a cell fills it."""
    tables = reference_tables().values()
    compose_ahead(preset.overrides for table in tables for preset in table.presets)
    cells = [cell for table in tables for row in table.rows for cell in row.cells.values()]
    lacking = [c.presets[0] for c in cells if c.presets and newest_match(runs, c.presets) is None]
    return list(dict.fromkeys(lacking))


def missing_sweeps(sweeps: Iterable[NestedSweep]) -> list[list[str]]:
    """The words after `lpgnn sweep` of those of the fair table that nobody has finished."""
    done = {frozenset(words_of(sweep)) for sweep in sweeps}
    planned = [model.command(dataset) for dataset in DATASETS for model in MODELS]
    return [words for words in planned if frozenset(words) not in done]


def plan(runs: Sequence[PresetRun], sweeps: Sequence[NestedSweep], rates: Rates) -> list[Planned]:
    """All that is missing beside these, with what it may take."""
    grid = combinations()
    found = [
        Planned(shlex.join(["lpgnn", "train", *one.overrides]), rates.run(preset_settings(one)))
        for one in missing_runs(runs)
    ]
    # A control takes what its model takes.
    models = [(words, _without_variant(words)) for words in missing_sweeps(sweeps)]
    compose_ahead(model for _, model in models)
    for words, model in models:
        estimate = rates.sweep(composed_settings(*model), grid)
        found.append(Planned(shlex.join(["lpgnn", "sweep", *words]), estimate))
    return found


def _without_variant(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in words if not word.startswith("variant="))


def commands(presets: Sequence[Preset], sweeps: Sequence[Sequence[str]]) -> list[str]:
    """One sweep per variant over its presets, then those of the fair table."""
    by_variant: dict[str, list[str]] = defaultdict(list)
    for preset in presets:
        by_variant[preset.variant].append(preset.experiment)
    found = []
    for variant, experiments in by_variant.items():
        chosen = [] if variant == UNCHANGED else [f"variant={variant}"]
        found.append(shlex.join(["lpgnn", "sweep", f"experiment={','.join(experiments)}", *chosen]))
    return found + [shlex.join(["lpgnn", "sweep", *words]) for words in sweeps]
