"""Writes a run folder as training does, with numbers that are quick to come by.

`python fake_trainer.py ROOT NAME UNITS EPOCHS` runs with live tracking to the default store.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from lpgnn_cli import tracking
from lpgnn_cli.config.tracking import MlflowConfig
from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.runfolder import (
    FINISHED,
    INTERRUPTED,
    MetricsWriter,
    Rule,
    RunFolder,
    RunRecord,
    Unit,
    UnitResult,
)

CONFIG = """\
dataset: {name: MUTAG, kind: tu}
aggregator: {name: sum, hidden: [20]}
propagation: {name: lagrangian, multiplier: node}
g: {name: squared}
protocol: {name: kfold, folds: 10}
tracking: {name: mlflow, uri: null, experiment: lpgnn}
lr: {theta: 0.01, multiplier: null}
layers: 1
state: [16]
quiet: false
"""


def metrics(unit: int, epoch: int) -> dict[str, float]:
    fit = 1 - math.exp(-epoch / (5 + unit))
    return {
        "train/accuracy": fit,
        "test/accuracy": 0.9 * fit - 0.01 * unit,
        "train/loss": 1 / (epoch + unit + 1),
        "train/violation_mean": 0.1 / epoch,
        "train/layer0/violation_mean": 0.1 / epoch,
        "test/violation_mean": 0.2 / epoch,
    }


class FakeTrainer:
    """Units one after the other, epoch by epoch."""

    def __init__(self, root: Path, name: str = "fake", units: int = 10, epochs: int = 20) -> None:
        self.run = RunFolder.create(root, "train", name)
        self.epochs = epochs
        self.record = RunRecord(
            id=uuid.uuid4().hex,
            command="train",
            name=name,
            argv=["train", "dataset=mutag"],
            version="0",
            started=time.time(),
            device="cpu",
            dataset="MUTAG",
            dataset_fingerprint="abc",
            units=[Unit(f"fold-{i:02d}", i, 0) for i in range(units)],
            pid=os.getpid(),
            host=platform.node(),
        )
        self.run.config_path.write_text(CONFIG)
        self.run.write_record(self.record)

    def train(self, on_epoch: Callable[[str, int], object] = lambda unit, epoch: None) -> None:
        for unit in self.record.units:
            self.train_unit(unit, on_epoch)

    def train_unit(
        self,
        unit: Unit,
        on_epoch: Callable[[str, int], object] = lambda unit, epoch: None,
        *,
        first: int = 1,
        last: int | None = None,
        scale: float = 1.0,
    ) -> None:
        last = last or self.epochs
        writer = MetricsWriter(self.run.make_unit(unit.name) / "metrics.csv", keep_epochs=first - 1)
        for epoch in range(first, last + 1):
            writer.write(epoch, {k: v * scale for k, v in metrics(unit.fold, epoch).items()})
            on_epoch(unit.name, epoch)
        writer.close()
        (self.run.unit(unit.name) / "last.pt").write_bytes(b"weights")
        if last == self.epochs:
            final = metrics(unit.fold, last)
            result = UnitResult(unit.name, FINISHED, last, last, Rule.LAST_EPOCH, final, 1.0)
            result.from_zero = {"accuracy": final["test/accuracy"] - 0.05}
            result.persistent = {"accuracy": final["test/accuracy"]}
            self.run.write_result(result)

    def finish(self) -> None:
        summarise(self.run)
        self.run.figures.mkdir()
        (self.run.figures / "accuracy.svg").write_text("<svg/>")
        self._end(FINISHED)

    def interrupt(self) -> None:
        self._end(INTERRUPTED)

    def _end(self, state: str) -> None:
        self.record.state = state
        self.record.ended = time.time()
        self.run.write_record(self.record)


def main() -> None:
    root, name, units, epochs = sys.argv[1:]
    trainer = FakeTrainer(Path(root), name, int(units), int(epochs))
    config = MlflowConfig(name="mlflow", uri=None, experiment="lpgnn")
    live = tracking.start(config, trainer.run)
    assert live
    trainer.train(lambda unit, epoch: live.epoch_done(unit, epoch, {}))
    trainer.finish()
    live.run_ended(trainer.run, {})
    assert "mlflow" not in sys.modules, "mlflow is for the follower alone"


if __name__ == "__main__":
    main()
