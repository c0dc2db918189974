"""Runs on several labels, on numbers and by other metrics than accuracy, from the outside."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpgnn_cli.cli import main

SOBER = ("tracking=none", "figures=false", "quiet=true", "device=cpu", "threads=1")
NODES, GRAPHS = 90, 30
Train = Callable[..., Path]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """A run of the real command, as a folder."""
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))

    def run(*words: str) -> Path:
        assert main(["train", *words, *SOBER, "protocol.workers=1"]) == 0
        return sorted((tmp_path / "runs" / "train").glob("*/*"))[-1]

    return run


def rings(path: Path, **changes: Any) -> str:
    """Thirty triangles; the first feature of a node is what its targets are made of."""
    node = np.arange(NODES)
    features = np.random.RandomState(0).randn(NODES, 2)
    arrays = {
        "features": features,
        "source": node,
        "target": node // 3 * 3 + (node + 1) % 3,
        "graph_ptr": np.arange(0, NODES + 1, 3),
        **changes,
    }
    np.savez(path, **arrays)
    return f"dataset.path={path}"


def features() -> Any:
    return np.random.RandomState(0).randn(NODES, 2)


def units(run: Path) -> list[Path]:
    return sorted((run / "units").iterdir())


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


LAYERS = (
    *("propagation=layers", "aggregator=none", "recipe=none", "layers=1"),
    *("lr.theta=0.01", "optim.batch_graphs=5", "epochs=60"),
)


def test_several_labels_per_node(tmp_path: Path, train: Train) -> None:
    labels = (features() > 0).astype(int)
    path = rings(tmp_path / "labels.npz", targets=labels)
    words = ["dataset=graphs", path, "protocol.folds=2", "class_weights=balanced", *LAYERS]
    run = train(*words)
    rows = read(run / "units" / "fold-00" / "metrics.csv")
    assert {"test/micro_f1", "test/label_accuracy"} <= rows[0].keys()
    assert "test/accuracy" not in rows[0]
    assert float(rows[-1]["train/micro_f1"]) > 0.9
    predictions = read(run / "units" / "fold-00" / "predictions.csv")
    assert list(predictions[0]) == [
        "item",
        "target_0",
        "target_1",
        "violation",
        "probability_0",
        "probability_1",
    ]
    assert main(["eval", f"run={run}", "tracking=none", "threads=1"]) == 0
    assert main(["eval", f"run={run}", "dataset=graphs", path, "tracking=none"]) == 0


@pytest.mark.parametrize("level", ["node", "graph"])
def test_numbers(level: str, tmp_path: Path, train: Train) -> None:
    """Far from 0 and widely spread, as energies are."""
    values = 1000 + 50 * features()[:, 0]
    targets = values if level == "node" else values.reshape(GRAPHS, 3).sum(1)
    path = rings(tmp_path / "numbers.npz", targets=targets)
    run = train("dataset=graphs", path, "protocol.folds=2", *LAYERS)
    rows = read(run / "units" / "fold-00" / "metrics.csv")
    last = {name: float(value) for name, value in rows[-1].items()}
    spread = float(np.std(targets))
    assert 0 < last["train/mae"] < 0.5 * spread, "in the units of the data"
    assert run.name.endswith("graphs-layers-none-k1")
    for row in read(run / "units" / "fold-00" / "predictions.csv"):
        assert abs(float(row["predicted_0"]) - float(row["target_0"])) < 4 * spread
        assert float(row["target_0"]) > 800
    summary = json.loads((run / "summary.json").read_text())
    curves = [[float(row["test/mae"]) for row in read(unit / "metrics.csv")] for unit in units(run)]
    assert summary["cv/mae_mean"] == pytest.approx(float(np.mean(curves, axis=0).min()))
    assert summary["per_fold_max/mae_mean"] == pytest.approx(np.mean([min(c) for c in curves]))
    assert "mae" in (run / "folds.csv").read_text().splitlines()[0].split(",")
    import lpgnn_cli as lpgnn
    from lpgnn_cli.data.datasets.graphs import read_graphs

    batch, _ = read_graphs(tmp_path / "numbers.npz")
    found = lpgnn.load(run).predict(batch)
    assert found.classes is None
    assert found.values is not None
    assert float((found.values.flatten() - batch.targets.flatten()).abs().mean()) < 0.6 * spread


def test_the_metric_selects_the_epoch(train: Train) -> None:
    words = ["dataset=clique", "dataset.graphs=20", "epochs=12", "protocol.select=metric"]
    run = train(
        *words, "recipe=none", "metric=roc_auc", "protocol.patience=50", "class_weights=balanced"
    )
    rows = read(run / "units" / "fold-00" / "metrics.csv")
    values = [float(row["val/roc_auc"]) for row in rows]
    result = json.loads((run / "units" / "fold-00" / "result.json").read_text())
    best = max(values)
    assert result["selected_epoch"] == max(k for k, v in enumerate(values, start=1) if v == best)
    assert result["rule"] == "validation metric"


def test_the_metric_is_what_is_reported(
    train: Train, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = train("dataset=mutag", "epochs=3", "protocol.folds=2", "metric=roc_auc")
    said = capsys.readouterr().out
    summary = json.loads((run / "summary.json").read_text())
    assert f"last epoch (honest)            {100 * summary['honest/roc_auc_mean']:.1f} ±" in said
    assert "ROC AUC" in said.splitlines()[2]
    rows = [[float(r["test/roc_auc"]) for r in read(unit / "metrics.csv")] for unit in units(run)]
    assert summary["cv/roc_auc_mean"] == pytest.approx(np.mean(rows, axis=0).max())
    assert main(["eval", f"run={run}", "tracking=none", "threads=1"]) == 0
    again = capsys.readouterr().out
    assert f"ROC AUC      {100 * summary['honest/roc_auc_mean']:.1f} ±" in again
    assert main(["runs"]) == 0
    assert "ROC AUC" in capsys.readouterr().out
    import lpgnn_cli as lpgnn

    seen = lpgnn.Run(run)
    assert (seen.metric, seen.value) == ("roc_auc", summary["honest/roc_auc_mean"])
    assert "ROC AUC" in repr(seen)
    assert seen.accuracy == summary["honest/accuracy_mean"]


def test_a_sweep_is_sorted_by_the_metric(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rings(tmp_path / "numbers.npz", targets=features()[:, 0])
    words = ["dataset=graphs", path, "protocol.folds=2", *LAYERS, "lr.theta=1e-5,1e-2"]
    sober = [word for word in SOBER if not word.startswith("quiet")]
    assert main(["sweep", *words, *sober, "protocol.workers=1"]) == 0
    (board,) = (tmp_path / "runs" / "sweep").glob("**/leaderboard.csv")
    first, second = read(board)
    assert (first["lr.theta"], second["lr.theta"]) == ("0.01", "1e-05"), "smaller errors are better"
    assert float(first["honest_mae"]) < float(second["honest_mae"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["metric=mae"], "metric=mae is not for classes, which MUTAG has: accuracy, "),
        (["metric=auc"], "metric must be one of auto, accuracy"),
    ],
)
def test_metrics_that_do_not_fit(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "dataset=mutag", *words, *SOBER]) == 2
    assert sentence in capsys.readouterr().err


def test_numbers_have_no_classes_to_weigh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rings(tmp_path / "numbers.npz", targets=features()[:, 0])
    words = ["dataset=graphs", path, "protocol.folds=2", "class_weights=balanced"]
    assert main(["train", *words, *SOBER]) == 2
    assert "class_weights=balanced is for classes and labels" in capsys.readouterr().err


def test_accuracy_cannot_select_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = rings(tmp_path / "numbers.npz", targets=features()[:, 0])
    words = ["dataset=graphs", path, "protocol=holdout", "protocol.select=accuracy"]
    assert main(["train", *words, *SOBER]) == 2
    assert "protocol.select=accuracy is for classes" in capsys.readouterr().err
