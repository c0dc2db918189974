"""What is still to be run for the tables, how long it may take, and the commands that run it.

Sweeps run it: they take over what has finished, resume what was interrupted, and fail one by one.
"""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from lpgnn_cli.config.compose import conf_dir
from lpgnn_cli.config.variants import UNCHANGED
from lpgnn_cli.paper.estimate import Estimate, Rates
from lpgnn_cli.paper.nested import NestedSweep
from lpgnn_cli.paper.presets import composed_settings, preset_settings
from lpgnn_cli.paper.reference import Preset, reference_tables
from lpgnn_cli.paper.runs import PresetRun, newest_match

# The fair table: every model, and the controls of LP-GNN, on every dataset, small datasets first;
# with folds of others where the project has them.
FAIR_MODELS = (
    ("lp_single",),
    ("lp_multi",),
    ("lp_single", "variant=control"),
    ("lp_multi", "variant=control"),
    ("lp_single", "variant=no_adjoint"),
    ("gnn",),
    ("gin",),
    ("gcn",),
    ("sage",),
    ("mlp",),
)
FAIR_DATASETS = ("mutag", "ptc", "enzymes", "imdb_b", "proteins", "imdb_m", "nci1")
FAIR_SPLITS = {"enzymes", "proteins"}
FAIR_GRID = "experiment/fair/_grid.yaml"


@dataclass(frozen=True)
class Planned:
    """What the tables lack; no estimate where nothing was ever collected."""

    command: str
    estimate: Estimate | None


def missing_runs(runs: Sequence[PresetRun]) -> list[Preset]:
    """One per empty cell, in the order of the tables; any preset of a cell fills it."""
    cells = [c for t in reference_tables().values() for r in t.rows for c in r.cells.values()]
    lacking = [c.presets[0] for c in cells if c.presets and newest_match(runs, c.presets) is None]
    return list(dict.fromkeys(lacking))


def missing_sweeps(sweeps: Iterable[NestedSweep]) -> list[list[str]]:
    """The words after `lpgnn sweep` of those of the fair table that nobody has finished."""
    done = {shlex.join(shlex.split(sweep.command)[2:]) for sweep in sweeps}
    planned = [fair_words(data, *model) for data in FAIR_DATASETS for model in FAIR_MODELS]
    return [words for words in planned if shlex.join(words) not in done]


def plan(runs: Sequence[PresetRun], sweeps: Sequence[NestedSweep]) -> list[Planned]:
    """All that is missing, with what it may take."""
    rates, combinations = Rates(runs, sweeps), fair_combinations()
    found = [
        Planned(shlex.join(["lpgnn", "train", *one.overrides]), rates.run(preset_settings(one)))
        for one in missing_runs(runs)
    ]
    for words in missing_sweeps(sweeps):
        estimate = rates.sweep(composed_settings(*words), combinations)
        found.append(Planned(shlex.join(["lpgnn", "sweep", *words]), estimate))
    return found


def fair_combinations() -> int:
    """How many every model of the fair table has to choose from."""
    grid = yaml.safe_load((conf_dir() / FAIR_GRID).read_text(encoding="utf-8"))
    return math.prod(
        len(values.split(",")) for values in grid["hydra"]["sweeper"]["params"].values()
    )


def fair_words(dataset: str, model: str, *variant: str) -> list[str]:
    splits = ["protocol.splits=fair"] if dataset in FAIR_SPLITS else []
    return [f"experiment=fair/{model}", f"dataset={dataset}", *splits, *variant]


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
