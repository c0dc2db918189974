"""What is still to be run for the tables, how long it may take, and the commands that run it.

Sweeps run it: they take over what has finished, resume what was interrupted, and fail one by one.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from lpgnn_cli.config.variants import UNCHANGED
from lpgnn_cli.paper.nested import NestedSweep
from lpgnn_cli.paper.presets import preset_settings
from lpgnn_cli.paper.reference import Preset, reference_tables
from lpgnn_cli.paper.runs import PresetRun

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


@dataclass(frozen=True)
class Planned:
    """A run of a preset that no table has yet; seconds of computing, None where nothing tells."""

    preset: Preset
    seconds: float | None


def missing_runs(runs: Sequence[PresetRun]) -> list[Planned]:
    """One per empty cell, in the order of the tables; any preset of a cell fills it."""
    done = {run.preset for run in runs if run.is_finished and not run.departures}
    cells = [c for t in reference_tables().values() for r in t.rows for c in r.cells.values()]
    lacking = [c.presets[0] for c in cells if c.presets and done.isdisjoint(c.presets)]
    rates = _rates(runs)
    return [Planned(preset, _estimate(preset, rates)) for preset in dict.fromkeys(lacking)]


def missing_sweeps(sweeps: Iterable[NestedSweep]) -> list[list[str]]:
    """The words after `lpgnn sweep` of those of the fair table that nobody has finished."""
    done = {shlex.join(shlex.split(sweep.command)[2:]) for sweep in sweeps}
    planned = [fair_words(data, *model) for data in FAIR_DATASETS for model in FAIR_MODELS]
    return [words for words in planned if shlex.join(words) not in done]


def fair_words(dataset: str, model: str, *variant: str) -> list[str]:
    splits = ["protocol.splits=fair"] if dataset in FAIR_SPLITS else []
    return [f"experiment=fair/{model}", f"dataset={dataset}", *splits, *variant]


def commands(planned: Sequence[Planned], sweeps: Sequence[Sequence[str]]) -> list[str]:
    """One sweep per variant over its presets, then those of the fair table."""
    by_variant: dict[str, list[str]] = defaultdict(list)
    for one in planned:
        by_variant[one.preset.variant].append(one.preset.experiment)
    found = []
    for variant, experiments in by_variant.items():
        chosen = [] if variant == UNCHANGED else [f"variant={variant}"]
        found.append(shlex.join(["lpgnn", "sweep", f"experiment={','.join(experiments)}", *chosen]))
    return found + [shlex.join(["lpgnn", "sweep", *words]) for words in sweeps]


Kind = tuple[str, str]


def _rates(runs: Sequence[PresetRun]) -> dict[Kind, float]:
    """Seconds per unit, epoch and layer of each dataset and propagation."""
    found: dict[Kind, list[float]] = defaultdict(list)
    for run in runs:
        work = sum(unit.epochs for unit in run.units) * _layers(run.settings)
        if work:
            found[_kind(run.settings)].append(sum(unit.seconds for unit in run.units) / work)
    return {kind: median(rates) for kind, rates in found.items()}


def _estimate(preset: Preset, rates: dict[Kind, float]) -> float | None:
    settings = preset_settings(preset)
    rate = rates.get(_kind(settings))
    if rate is None:
        return None
    units = int(settings.get("protocol.folds", "1")) * int(settings.get("protocol.seeds", "1"))
    return rate * units * int(settings["epochs"]) * _layers(settings)


def _kind(settings: dict[str, str]) -> Kind:
    return settings["dataset.name"], settings["propagation.name"]


def _layers(settings: dict[str, str]) -> int:
    return int(settings.get("layers", "1"))
