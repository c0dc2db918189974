"""Sweeps under `protocol=nested` in the report: one row each, and paired tests between them.

results/nested.jsonl keeps one sweep per line, as `NestedSweep` has it.
"""

from __future__ import annotations

import csv
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from lpgnn_cli.config.effects import essential_words
from lpgnn_cli.formatting import csv_text, metric_mean_std, p_text, signed
from lpgnn_cli.metrics import in_per_cent
from lpgnn_cli.paper.document import NOTHING, Section
from lpgnn_cli.paper.kept import KeptSweep, in_order, keep_newest, read_kept
from lpgnn_cli.paper.runs import download
from lpgnn_cli.reporting.grid import RUN, Grid
from lpgnn_cli.reporting.significance import PairedTest, paired_test
from lpgnn_cli.runfolder import FINISHED, RunFolder
from lpgnn_cli.settings import read_flat_config
from lpgnn_cli.sweeps.nested import FILE, NESTED

KEPT = "nested.jsonl"
# What a sweep is read from.
FILES = ("config.yaml", "run.json", "summary.json", FILE)
TEST, INNER, PERSISTENT = "test_", "inner_validation_", "persistent_"
INTRO = [
    "Hyperparameters and epochs chosen without the test parts: every outer fold chooses among the "
    "combinations by its own inner validation part, and its choice is trained again and scored on "
    "its test part, from zero. Mean ± population standard deviation over the outer folds.",
    "Differences are paired by outer fold, between sweeps on the same graphs and folds.",
]


@dataclass(frozen=True)
class NestedSweep(KeptSweep):
    """What is reported of one sweep; figures are one per outer fold."""

    model: str
    seeds: int
    figures: tuple[float, ...]
    inner: tuple[float, ...]
    persistent: tuple[float, ...]
    dataset_fingerprint: str
    split_fingerprint: str
    # Of computing, over all jobs; what was collected before knows none.
    seconds: float | None = None

    @property
    def apart(self) -> float:
        """From zero minus persistent, in percentage points."""
        if not self.persistent or not in_per_cent(self.metric):
            return math.nan
        return 100 * float(np.mean(self.figures) - np.mean(self.persistent))


def sweeps_in_folders(root: Path) -> list[NestedSweep]:
    """The finished ones below the root of all runs, by dataset and name."""
    found = [_read(RunFolder(path.parent)) for path in sorted(root.glob(f"sweep/*/{FILE}"))]
    return in_order(sweep for sweep in found if sweep is not None)


def sweeps_in_store(uri: str, into: Path) -> list[NestedSweep]:
    """The finished ones of an MLflow store, by dataset and name."""
    from lpgnn_cli.tracking.pastruns import parent_runs
    from lpgnn_cli.tracking.store import open_client, reading_store

    with reading_store(uri):
        client = open_client(uri)
        found = [
            _read(download(client, run.info.run_id, FILES, (), into))
            for run in parent_runs(client)
            if run.data.params.get("protocol.name") == NESTED
        ]
    return in_order(sweep for sweep in found if sweep is not None)


def read_sweeps(results: Path) -> list[NestedSweep]:
    """Those that were collected."""
    return read_kept(results / KEPT, NestedSweep)


def collect_sweeps(sweeps: Sequence[NestedSweep], results: Path) -> list[str]:
    """Keep the newest sweep of each name and dataset; the names of those that are new."""
    return keep_newest(results / KEPT, NestedSweep, sweeps)


def nested_section(sweeps: Sequence[NestedSweep]) -> Section:
    header = ["dataset", "sweep", "model", NESTED, "persistent", "apart", "inner validation"]
    header += ["combinations", "folds x seeds", RUN]
    rows = [
        [
            *(sweep.dataset, sweep.name, sweep.model),
            *(_text(sweep, sweep.figures), _text(sweep, sweep.persistent)),
            *(NOTHING if math.isnan(sweep.apart) else signed(sweep.apart),),
            *(_text(sweep, sweep.inner), str(sweep.combinations)),
            *(f"{len(sweep.figures)} x {sweep.seeds}", sweep.command),
        ]
        for sweep in sweeps
    ]
    return Section(
        id=NESTED,
        title="Selected without the test parts",
        intro=INTRO,
        overview=Grid(header, rows, labels=3),
        details=Grid([], []),
        comparisons=_comparisons(sweeps),
        notes=[],
    )


def nested_csv(sweeps: Sequence[NestedSweep]) -> str:
    """One row per sweep, with fractions."""
    header = ["dataset", "sweep", "model", "metric", "mean", "std", "persistent_mean", "inner_mean"]
    header += ["combinations", "folds", "seeds", "by_fold", "command"]
    rows = [
        [
            *(sweep.dataset, sweep.name, sweep.model, sweep.metric),
            *(float(np.mean(sweep.figures)), float(np.std(sweep.figures))),
            float(np.mean(sweep.persistent)) if sweep.persistent else "",
            *(float(np.mean(sweep.inner)), sweep.combinations, len(sweep.figures), sweep.seeds),
            *(" ".join(f"{figure:g}" for figure in sweep.figures), sweep.command),
        ]
        for sweep in sweeps
    ]
    return csv_text(header, rows)


def compare(one: NestedSweep, other: NestedSweep) -> PairedTest | None:
    """One minus other, where both were scored on the same folds of the same graphs."""
    alike = ("dataset_fingerprint", "split_fingerprint", "metric")
    if any(getattr(one, name) != getattr(other, name) for name in alike):
        return None
    if len(one.figures) != len(other.figures):
        return None
    scale = 100 if in_per_cent(one.metric) else 1
    differences = [scale * (a - b) for a, b in zip(one.figures, other.figures, strict=True)]
    return paired_test(differences, overlap=1 / (len(differences) - 1))


def _comparisons(sweeps: Sequence[NestedSweep]) -> Grid:
    header = ["comparison", "on", "pairs", "difference", "p", "p corrected"]
    rows = []
    for one, other in combinations(sweeps, 2):
        test = compare(one, other)
        if test is not None:
            values = [signed(test.difference), p_text(test.p_flips), p_text(test.p_corrected)]
            title = f"{one.name} minus {other.name}"
            rows.append([title, one.dataset, str(test.pairs), *values])
    return Grid(header, rows, labels=2)


def _text(sweep: NestedSweep, figures: Sequence[float]) -> str:
    if not figures:
        return NOTHING
    mean, std = float(np.mean(figures)), float(np.std(figures))
    return metric_mean_std(sweep.metric, mean, std, len(figures))


def _read(folder: RunFolder) -> NestedSweep | None:
    """A sweep, or None where it has not finished or its files cannot be read."""
    try:
        record, config = folder.read_record(), read_flat_config(folder.config_path)
        summary = folder.read_summary()
        with (folder.path / FILE).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if record.state != FINISHED or len(rows) < 2:
            return None
        metric = next(name for name in rows[0] if name.startswith(TEST)).removeprefix(TEST)
        kept = [row[PERSISTENT + metric] for row in rows]
        return NestedSweep(
            name=_name(config) or record.name,
            dataset=config["dataset.name"],
            model=_model(config),
            metric=metric,
            combinations=int(summary["jobs"]) - len(rows),
            seeds=len(rows[0]["by_seed"].split()),
            figures=tuple(float(row[TEST + metric]) for row in rows),
            inner=tuple(float(row[INNER + metric]) for row in rows),
            persistent=tuple(map(float, kept)) if all(kept) else (),
            command=shlex.join(["lpgnn", *essential_words(record.argv)]),
            started=record.started,
            version=record.version,
            git_commit=record.git_commit,
            versions=record.versions,
            dataset_fingerprint=record.dataset_fingerprint,
            split_fingerprint=record.split_fingerprint,
            seconds=summary.get("seconds"),
        )
    except (OSError, ValueError, KeyError, StopIteration):
        return None


def _name(config: dict[str, str]) -> str:
    """What all jobs of a preset are called, such as fair_gin."""
    name = config.get("name", "null")
    return "" if name == "null" else name


def _model(config: dict[str, str]) -> str:
    words = [config.get("propagation.name", ""), config.get("aggregator.name", "")]
    frozen = ["frozen"] if config.get("propagation.states") == "frozen" else []
    return "/".join([*words, *frozen])
