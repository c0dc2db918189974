"""Sweeps under `protocol=nested`, from run folders, stores, and those that were collected.

results/nested.jsonl keeps one sweep per line, as `NestedSweep` has it.
"""

from __future__ import annotations

import csv
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lpgnn_cli.config.effects import essential_words
from lpgnn_cli.config.variants import UNCHANGED, run_name
from lpgnn_cli.metrics import in_per_cent
from lpgnn_cli.paper.kept import KeptSweep, in_order, keep_newest, read_kept
from lpgnn_cli.paper.runs import download
from lpgnn_cli.runfolder import FINISHED, RunFolder
from lpgnn_cli.settings import read_flat_config
from lpgnn_cli.sweeps.nested import FILE, NESTED

KEPT = "nested.jsonl"
# What a sweep is read from.
FILES = ("config.yaml", "run.json", "summary.json", FILE)
TEST, INNER, PERSISTENT = "test_", "inner_validation_", "persistent_"
SELECT, AUTO, LOSS, LAST = "protocol.select=", "auto", "loss", "last"


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
    def select(self) -> str:
        """Which epoch counts: auto, or what the command says."""
        said = [word for word in shlex.split(self.command) if word.startswith(SELECT)]
        return said[-1].removeprefix(SELECT) if said else AUTO

    @property
    def question(self) -> tuple[str, ...]:
        return (*super().question, self.select)

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
    """Keep the newest of each name, dataset and choice of epochs; the names of the new ones."""
    return keep_newest(results / KEPT, NestedSweep, sweeps)


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
            name=_name(config, record.argv) or record.name,
            dataset=config["dataset.name"],
            model=_model(config),
            metric=metric,
            combinations=int(summary["jobs"]) - len(rows),
            seeds=len(rows[0]["by_seed"].split()),
            figures=tuple(float(row[TEST + metric]) for row in rows),
            inner=tuple(float(row[INNER + metric]) for row in rows),
            persistent=tuple(map(float, kept)) if all(kept) else (),
            command=shlex.join(["lpgnn", *_command(config, record.argv)]),
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


def _name(config: dict[str, str], argv: Sequence[str]) -> str:
    """What all jobs of a preset are called, such as fair_gin; a variant of it has its own name."""
    name, said = config.get("name", "null"), dict(word.partition("=")[::2] for word in argv)
    if name != "null":
        return name
    preset, variant = said.get("experiment", ""), said.get("variant", UNCHANGED)
    return run_name(preset, variant) if preset and "," not in preset + variant else ""


def _command(config: dict[str, str], argv: Sequence[str]) -> list[str]:
    """What repeats it; which epoch counts is said where it is not as by default today."""
    words = essential_words(argv)
    select = config.get("protocol.select", AUTO)
    said = select == AUTO or any(word.startswith(SELECT) for word in words)
    return words if said else [*words, f"{SELECT}{select}"]


def _model(config: dict[str, str]) -> str:
    words = [config.get("propagation.name", ""), config.get("aggregator.name", "")]
    frozen = ["frozen"] if config.get("propagation.states") == "frozen" else []
    no_adjoint = ["no adjoint"] if config.get("propagation.adjoint") == "false" else []
    return "/".join([*words, *frozen, *no_adjoint])
