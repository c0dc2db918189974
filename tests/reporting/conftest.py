"""Run folders as a run would leave them, with known numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from omegaconf import OmegaConf

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
Curves = list[dict[str, NDArray[np.float64]]]
MakeCurves = Callable[..., Curves]

CONFIG = {
    "dataset": {"name": "MUTAG"},
    "propagation": {"name": "lagrangian", "multiplier": "node"},
    "aggregator": {"name": "sum"},
    "g": {"name": "squared"},
    "layers": 3,
    "tracking": {"name": "mlflow"},
}


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A run folder with one unit for each entry of `curves` (metric → values over the epochs).

    Nothing persists unless that is said: what was logged is what the test phase finds.
    """

    def make(
        curves: Sequence[Mapping[str, Sequence[float]]],
        *,
        states: Sequence[str] | None = None,
        rule: Rule = Rule.LAST_EPOCH,
        selected: Sequence[int] | None = None,
        from_zero: Sequence[dict[str, float]] | None = None,
        persistent: Sequence[dict[str, float]] | None = None,
        rescored: Sequence[tuple[int, dict[str, float]]] | None = None,
        inference: Sequence[dict[str, float]] | None = None,
        config: Mapping[str, Any] = CONFIG,
        seeds: int = 1,
        reason: str = "",
    ) -> RunFolder:
        run = RunFolder.create(tmp_path / "runs", "train", "test")
        folds = len(curves) // seeds
        units = [
            Unit(
                f"fold-{i % folds:02}" + (f"-seed-{i // folds}" if seeds > 1 else ""),
                i % folds,
                i // folds,
            )
            for i in range(len(curves))
        ]
        run.write_record(
            RunRecord("id", "train", "test", [], "0", time.time(), dataset="MUTAG", units=units)
        )
        OmegaConf.save(OmegaConf.create(dict(config)), run.config_path)
        for i, (unit, columns) in enumerate(zip(units, curves, strict=True)):
            epochs = len(next(iter(columns.values())))
            writer = MetricsWriter(run.make_unit(unit.name) / "metrics.csv")
            rows = [{k: float(v[e]) for k, v in columns.items()} for e in range(epochs)]
            for epoch, row in enumerate(rows, start=1):
                writer.write(epoch, row)
            writer.close()
            at = selected[i] if selected else epochs
            state = states[i] if states else FINISHED
            part = "test/" if any(name.startswith("test/") for name in columns) else "train/"
            logged = {k.removeprefix(part): v for k, v in rows[at - 1].items() if part in k}
            epoch, again = rescored[i] if rescored else (0, {})
            run.write_result(
                UnitResult(
                    unit=unit.name,
                    state=state,
                    epochs=epochs,
                    selected_epoch=at,
                    rule=rule,
                    metrics=rows[at - 1],
                    seconds=10.0 + i,
                    reason="" if state == FINISHED else reason,
                    from_zero=from_zero[i] if from_zero else logged if state == FINISHED else {},
                    persistent=persistent[i] if persistent else {},
                    inference=inference[i] if inference else {},
                    best_mean_epoch=epoch,
                    best_mean_epoch_from_zero=again,
                )
            )
        return run

    return make


@pytest.fixture
def realistic_curves() -> MakeCurves:
    """Curves of several units that look like training, with three layers."""

    def curves(units: int, epochs: int, layers: int = 3) -> Curves:
        random = np.random.default_rng(0)
        t = np.arange(1, epochs + 1)
        made = []
        for _ in range(units):
            ceiling, speed = random.normal(0.87, 0.05), random.normal(60, 10)
            rise = 1 - np.exp(-t / speed)
            noise = random.normal(0, 0.01, epochs)
            columns = {
                "train/accuracy": np.clip(0.55 + 0.39 * rise + noise, 0, 1),
                "test/accuracy": np.clip(0.55 + (ceiling - 0.55) * rise + 2 * noise, 0, 1),
                "train/loss": 0.7 * np.exp(-t / 150) + 0.15,
                "test/loss": 0.6 * np.exp(-t / 150) + 0.3 + 0.1 * t / epochs,
            }
            for k in range(layers):
                fall = np.exp(-t / 90) + 0.01
                lift = np.exp(random.normal(0, 0.2))
                columns[f"train/layer{k}/violation_mean"] = 0.3 / (k + 1) * fall * lift
                columns[f"test/layer{k}/violation_mean"] = 0.4 / (k + 1) * fall * lift
                columns[f"train/layer{k}/multiplier_norm"] = (t - 1) * 0.01 * (k + 1) * lift
            columns["train/violation_mean"] = columns["train/layer0/violation_mean"]
            columns["train/violation_max"] = 9 * columns["train/layer0/violation_mean"]
            columns["test/violation_mean"] = columns["test/layer0/violation_mean"]
            columns["test/violation_max"] = 8 * columns["test/layer0/violation_mean"]
            columns["train/multiplier_norm"] = columns["train/layer0/multiplier_norm"]
            made.append(columns)
        return made

    return curves
