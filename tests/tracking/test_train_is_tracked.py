"""The real command: a run of ten folds on MUTAG, and what MLflow's client finds afterwards."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lpgnn_cli.metrics import METRICS
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.tracking.store import default_uri, open_client

from ..conftest import present


def test_a_run_on_mutag_leaves_one_parent_and_ten_children(runs: Path) -> None:
    settings = ["dataset=mutag", "epochs=4", "figures=false", "quiet=true"]
    subprocess.run([sys.executable, "-m", "lpgnn_cli", "train", *settings], check=True)
    (record,) = runs.glob("train/*/*/run.json")
    run = RunFolder(record.parent)

    client = open_client(default_uri())
    experiment = present(client.get_experiment_by_name("lpgnn"))
    found = client.search_runs([experiment.experiment_id])
    (parent,) = (r for r in found if "mlflow.parentRunId" not in r.data.tags)
    children = [r for r in found if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(found) == 11
    assert len(children) == 10
    assert {r.info.status for r in found} == {"FINISHED"}

    accuracies_UE = []
    for child in children:
        rows = run.read_metrics(child.info.run_name)
        assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
        for metric in rows[0].keys() - {"epoch", "time"}:
            part, _, name = metric.rpartition("/")
            assert part.split("/")[0] in METRICS[name].parts
            history = client.get_metric_history(child.info.run_id, metric)
            assert [(m.step, m.value) for m in history] == [
                (row["epoch"], row[metric]) for row in rows
            ]
        accuracies_UE.append([row["test/accuracy"] for row in rows])

    mean_E, std_E = np.mean(accuracies_UE, axis=0), np.std(accuracies_UE, axis=0)
    for name, expected_E in {"mean": mean_E, "std": std_E}.items():
        history = client.get_metric_history(parent.info.run_id, f"test/accuracy_{name}")
        assert [m.value for m in history] == pytest.approx(expected_E.tolist())
    best = int(np.argmax(mean_E))
    assert parent.data.metrics["cv/best_epoch"] == best + 1
    assert parent.data.metrics["cv/accuracy_mean"] == pytest.approx(mean_E[best])
    assert parent.data.metrics["cv/accuracy_std"] == pytest.approx(std_E[best])
    assert parent.data.params["dataset.name"] == "MUTAG"
    for tag in ("version", "device", "segment_backend", "dataset_fingerprint"):
        assert parent.data.tags[tag]
