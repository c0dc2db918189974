"""Run folders of presets, with made-up numbers."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from lpgnn_cli.paper.presets import preset_text
from lpgnn_cli.paper.reference import presets_by_name
from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.runfolder import (
    FINISHED,
    MetricsWriter,
    Rule,
    RunFolder,
    RunRecord,
    Unit,
    UnitResult,
)

MakeRun = Callable[..., RunFolder]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Presets composed once for all tests, in whichever process of pytest-xdist they run."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "presets-cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of all runs, and the current folder around it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LPGNN_CACHE", str(cache))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path / "runs"


@pytest.fixture
def make_run(runs: Path) -> MakeRun:
    """A run of a preset; `accuracies` are those of its units, `middle` of its second epoch."""
    clock = itertools.count(1)

    def make(
        name: str,
        accuracies: Sequence[float],
        *,
        middle: Sequence[float] | None = None,
        seeds: int = 1,
        state: str = FINISHED,
        unit_states: Sequence[str] | None = None,
        folds_of: str = "same",
        violation: float = 0.01,
        persistent: Sequence[float] | None = None,
        **changes: object,
    ) -> RunFolder:
        preset = presets_by_name()[name]
        run = RunFolder.create(runs, "train", name)
        folds = len(accuracies) // seeds
        units = [
            Unit(f"fold-{f:02}" + (f"-seed-{s}" if seeds > 1 else ""), f, s)
            for s in range(seeds)
            for f in range(folds)
        ]
        config = yaml.safe_load(preset_text(preset))
        for path, value in changes.items():
            *groups, key = path.split("__")
            inner = config
            for group in groups:
                inner = inner[group]
            inner[key] = value
        run.config_path.write_text(yaml.safe_dump(config), encoding="utf-8")
        record = RunRecord(
            id=f"id{next(clock)}",
            command="train",
            name=name,
            argv=["train", *preset.overrides, "data.root=/somewhere/else", "quiet=true"],
            version="0.1.0",
            started=time.time() + next(clock),
            state=state,
            dataset_fingerprint="data",
            split_fingerprint=folds_of,
            units=units,
            host="some-machine",
            versions={"torch": "2.0"},
        )
        run.write_record(record)
        halfway = middle or [a - 0.1 for a in accuracies]
        for i, unit in enumerate(units):
            values = [0.5, halfway[i], accuracies[i]]
            writer = MetricsWriter(run.make_unit(unit.name) / "metrics.csv")
            rows = [
                {
                    "train/accuracy": 1.0,
                    "test/accuracy": value,
                    "test/violation_mean": violation * (3 - epoch),
                }
                for epoch, value in enumerate(values)
            ]
            for epoch, row in enumerate(rows, start=1):
                writer.write(epoch, row)
            writer.close()
            unit_state = unit_states[i] if unit_states else FINISHED
            result = UnitResult(unit.name, unit_state, 3, 3, Rule.LAST_EPOCH, rows[-1], 60.0)
            result.from_zero = {"accuracy": accuracies[i]}
            result.persistent = {"accuracy": persistent[i]} if persistent else {}
            run.write_result(result)
        summarise(run)
        return run

    return make
