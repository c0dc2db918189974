"""The fair table: every model on every dataset under `protocol=nested`, as `experiment=fair/*`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import yaml

from lpgnn_cli.config.compose import conf_dir
from lpgnn_cli.data.catalogue import CATALOGUE
from lpgnn_cli.formatting import count
from lpgnn_cli.paper.nested import AUTO, LAST, LOSS, SELECT, NestedSweep

GRID = "experiment/fair/_grid.yaml"
# How often each cell is measured: outer folds, and seeds of each.
FOLDS, SEEDS = 10, 3
# What tells the rows of one preset apart.
CHANGES = ("variant=", f"{SELECT}{LAST}")
# What a note says in words of its own.
SAID_OTHERWISE = (SELECT, "protocol.folds=", "protocol.retrain=")


@dataclass(frozen=True)
class Model:
    """A row: a preset in `experiment/fair`, and what is changed in it."""

    title: str
    words: tuple[str, ...]
    # The one that this is a variation of, and stands below.
    variation_of: str = ""

    def command(self, dataset: str) -> list[str]:
        """The words after `lpgnn sweep` that measure it on a dataset."""
        experiment, *variant = self.words
        splits = ["protocol.splits=fair"] if dataset in WITH_FAIR_SPLITS else []
        return [f"experiment=fair/{experiment}", f"dataset={dataset}", *splits, *variant]


def _with_controls(title: str, experiment: str) -> Iterator[Model]:
    yield Model(title, (experiment,))
    yield Model("states frozen", (experiment, "variant=control"), variation_of=title)
    yield Model("no adjoint", (experiment, "variant=no_adjoint"), variation_of=title)


OURS = (
    *_with_controls("LP-GNN, K = 1", "lp_single"),
    *_with_controls("LP-GNN, K = 3", "lp_multi"),
)
RIVALS = (
    Model("GNN*", ("gnn",)),
    Model("GIN", ("gin",)),
    # As LP-GNN is trained, on all graphs of the other folds.
    Model("last epoch", ("gin", f"{SELECT}{LAST}"), variation_of="GIN"),
    Model("GCN", ("gcn",)),
    Model("GraphSAGE", ("sage",)),
    Model("no structure", ("mlp",)),
)
MODELS = (*OURS, *RIVALS)
# Options of the group `dataset` and what they are called, small ones first.
DATASETS = {
    "mutag": "MUTAG",
    "ptc": "PTC",
    "enzymes": "ENZYMES",
    "imdb_b": "IMDB-B",
    "proteins": "PROTEINS",
    "imdb_m": "IMDB-M",
    "nci1": "NCI1",
}
# With folds of others where the project has them.
WITH_FAIR_SPLITS = {"enzymes", "proteins"}


@dataclass(frozen=True)
class FairCell:
    """A model on a dataset, and the sweep that measured it."""

    model: Model
    dataset: str
    sweep: NestedSweep

    @property
    def by_loss(self) -> bool:
        return self.sweep.select == LOSS

    @property
    def remark(self) -> str:
        """What else is another than the table has it; empty where nothing is."""
        own, usual = words_of(self.sweep), self.model.command(self.dataset)
        changed = [word for word in own if word not in usual]
        said = " ".join(word for word in changed if not word.startswith(SAID_OTHERWISE))
        parts = [said] if said else []
        parts += [f"without {word}" for word in usual if word not in own]
        folds, seeds = len(self.sweep.figures), self.sweep.seeds
        if (folds, seeds) != (FOLDS, SEEDS):
            parts.append(f"{count(folds, 'outer fold')}, {count(seeds, 'seed')}")
        return "; ".join(parts)


def fair_cells(sweeps: Iterable[NestedSweep]) -> dict[tuple[Model, str], FairCell]:
    """The newest sweep of each, under `protocol.select=auto` where there is one."""
    best: dict[tuple[Model, str], FairCell] = {}
    for sweep in sorted(sweeps, key=lambda sweep: (sweep.select == AUTO, sweep.started)):
        if place := place_of(sweep):
            best[place] = FairCell(*place, sweep)
    return {(m, d): best[m, d] for d in DATASETS for m in MODELS if (m, d) in best}


def place_of(sweep: NestedSweep) -> tuple[Model, str] | None:
    """The cell that a sweep is of; None where it is of none."""
    words = words_of(sweep)
    changes = [word for word in words if word.startswith(CHANGES) and word != "variant=none"]
    for dataset in DATASETS:
        if sweep.dataset == CATALOGUE[dataset].tu_name:
            for model in MODELS:
                experiment, *change = model.words
                if f"experiment=fair/{experiment}" in words and changes == change:
                    return model, dataset
    return None


def words_of(sweep: NestedSweep) -> list[str]:
    """Those after `lpgnn sweep`."""
    return shlex.split(sweep.command)[2:]


def combinations() -> int:
    """How many settings every model has to choose from."""
    grid = yaml.safe_load((conf_dir() / GRID).read_text(encoding="utf-8"))
    axes = grid["hydra"]["sweeper"]["params"]
    return math.prod(len(values.split(",")) for values in axes.values())
