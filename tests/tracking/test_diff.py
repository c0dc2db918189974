"""`lpgnn diff` of runs whose folders are gone: MLflow has what it needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lpgnn_cli.cli import main
from lpgnn_cli.tracking.mirror import Mirror
from lpgnn_cli.tracking.store import default_uri

from .conftest import MakeTrainer


def test_by_mlflow_id(
    make_trainer: MakeTrainer, capsys: pytest.CaptureFixture[str], runs: Path, empty_store: Path
) -> None:
    shutil.copy(empty_store, runs / "mlflow.db")
    folders, ids = [], []
    for name in ("one", "other"):
        trainer = make_trainer(name=name, units=3, epochs=4)
        trainer.train()
        trainer.finish()
        Mirror(trainer.run, default_uri(), "lpgnn").send(ended=True)
        folders.append(str(trainer.run.path))
        state = json.loads((trainer.run.path / "tracking.json").read_text())
        ids.append(state["parent"]["run_id"])
    assert main(["diff", *folders]) == 0
    here = capsys.readouterr().out
    for folder in folders:
        shutil.rmtree(folder)
    assert main(["diff", *ids, "--output", "diff.html"]) == 0
    assert "data:image/png" in Path("diff.html").read_text()
    capsys.readouterr()
    assert main(["diff", *ids]) == 0
    there = capsys.readouterr().out
    begin = "Settings that differ"
    assert there[there.index(begin) :] == here[here.index(begin) :]
    assert "from zero (honest)" in there
