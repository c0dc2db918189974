"""Trained networks as MLflow models: logged by the real command, loaded by MLflow alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpgnn_cli as lpgnn
from lpgnn_cli.cli import main
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.node_link import from_node_link
from lpgnn_cli.runfolder import MODEL, RunFolder
from lpgnn_cli.tracking.mirror import Mirror, Sent
from lpgnn_cli.tracking.models import find_networks, model_location, registered_as, wants_models
from lpgnn_cli.tracking.state import read_state, write_state
from lpgnn_cli.tracking.store import open_client

from ..conftest import present
from .conftest import MakeTrainer

SETTINGS = ("dataset=mutag", "protocol=kfold", "protocol.folds=3", "epochs=3", "figures=false")
# Another process, which has MLflow and the model and nothing else of the run.
LOAD = """
import json, sys, mlflow
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model(sys.argv[2])
example = model.input_example
nodes = [{"id": i, "features": f} for i, f in enumerate(example[0]["features"])]
ends = zip(example[0]["source"], example[0]["target"], example[0]["arc_labels"])
edges = [{"source": s, "target": t, "features": f} for s, t, f in ends]
linked = {"nodes": nodes, "edges": edges, "directed": True}
answers = [model.predict(x).to_dict("records") for x in (example, [linked, linked])]
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of three folds, tracked and registered by the real command."""
    root = tmp_path_factory.mktemp("runs")
    subprocess.run(
        [sys.executable, "-m", "lpgnn_cli", "train", *SETTINGS, "tracking.register=mutag@best"],
        check=True,
        cwd=root,
        env={**_environment(), "LPGNN_RUNS": str(root)},
    )
    (record,) = root.glob("train/*/*/run.json")
    return RunFolder(record.parent)


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}


def test_a_registered_model_answers_in_another_process(trained: RunFolder) -> None:
    root = trained.path.parents[2]
    command = [sys.executable, "-c", LOAD, f"sqlite:///{root / 'mlflow.db'}", "models:/mutag@best"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    of_example, of_links = json.loads(done.stdout.splitlines()[-1])
    graph = json.loads(trained.data_path.read_text())["example"]
    assert of_links[0]["probabilities"] == pytest.approx(of_example[0]["probabilities"])
    assert len(of_links) == 2
    # The same as the folds of the run give, asked in Python.
    expected = lpgnn.load(trained.path).predict(_batch(graph)).probabilities
    assert expected is not None
    assert of_example[0]["probabilities"] == pytest.approx(expected[0].tolist(), abs=1e-6)


def test_lpgnn_predict_asks_the_model(trained: RunFolder, tmp_path: Path) -> None:
    root = trained.path.parents[2]
    words = ["predict", "dataset=mutag", f"tracking.uri=sqlite:///{root / 'mlflow.db'}"]
    answers: list[str] = []
    for run in ("models:/mutag@best", str(trained.path)):
        target = tmp_path / f"{len(answers)}.csv"
        assert main([*words, f"run={run}", f"output={target}"]) == 0
        answers.append(target.read_text())
    assert answers[0] == answers[1]


def _batch(graph: dict[str, Any]) -> GraphBatch:
    return from_node_link([graph])


def test_every_unit_has_a_model_with_its_metrics(trained: RunFolder) -> None:
    root = trained.path.parents[2]
    client = open_client(f"sqlite:///{root / 'mlflow.db'}")
    experiment = present(client.get_experiment_by_name("lpgnn")).experiment_id
    models = {m.source_run_id: m for m in client.search_logged_models([experiment])}
    runs = {run.info.run_id: run for run in client.search_runs([experiment])}
    assert models.keys() == runs.keys()
    fingerprint = trained.read_record().dataset_fingerprint
    for run_id, model in models.items():
        run = runs[run_id]
        assert model.status == "READY"
        (output,) = present(run.outputs).model_outputs
        assert output.model_id == model.model_id
        linked = {metric.key: metric for metric in present(model.metrics)}
        accuracy = linked.get("honest/accuracy") or linked["honest/accuracy_mean"]
        assert accuracy.value == run.data.metrics[accuracy.key]
        assert fingerprint.startswith(present(accuracy.dataset_digest))
        folder = Path(model.artifact_location.removeprefix("file://"))
        units = 3 if "lpgnn.unit" not in run.data.tags else 1
        assert len(find_networks(folder)) == units
        assert not list(folder.rglob("*.pkl"))


def test_data_and_split_are_inputs_with_our_fingerprints(trained: RunFolder) -> None:
    root, record = trained.path.parents[2], trained.read_record()
    client = open_client(f"sqlite:///{root / 'mlflow.db'}")
    state = present(read_state(trained))
    inputs = present(client.get_run(state.parent.run_id).inputs).dataset_inputs
    data, split = (item.dataset for item in inputs)
    assert (data.name, split.name) == ("MUTAG", "MUTAG-kfold")
    assert json.loads(present(data.profile))["fingerprint"] == record.dataset_fingerprint
    assert json.loads(present(data.profile))["graphs"] == 188
    assert json.loads(present(split.profile))["fingerprint"] == record.split_fingerprint


def test_the_description_is_the_closing_table(trained: RunFolder) -> None:
    client = open_client(f"sqlite:///{trained.path.parents[2] / 'mlflow.db'}")
    state = present(read_state(trained))
    run = client.get_run(state.parent.run_id)
    note = run.data.tags["mlflow.note.content"]
    assert note.startswith("# MUTAG, lagrangian, diffusion")
    assert "last epoch (honest)" in note
    # The id, propagation, aggregator and K within what tables show.
    assert run.info.run_name[:15].startswith(f"{trained.read_record().id[:4]}-lp-diff-k1")


def test_the_model_file_is_small_and_scores_like_the_checkpoint(trained: RunFolder) -> None:
    unit = trained.unit("fold-00")
    assert (unit / MODEL).stat().st_size < (unit / "last.pt").stat().st_size / 5
    batch = _batch(json.loads(trained.data_path.read_text())["example"])
    by_file = [lpgnn.load(unit / name).predict(batch).probabilities for name in (MODEL, "last.pt")]
    np.testing.assert_array_equal(by_file[0], by_file[1])


def test_a_second_pass_makes_no_second_model(trained: RunFolder) -> None:
    uri = f"sqlite:///{trained.path.parents[2] / 'mlflow.db'}"
    client = open_client(uri)
    experiment = present(client.get_experiment_by_name("lpgnn")).experiment_id
    before = {m.model_id for m in client.search_logged_models([experiment])}
    assert Mirror(trained, uri, "lpgnn").send(ended=True) == Sent(metrics=0, artifacts=0)
    # An answer that was lost: the model is there, and nobody knows.
    state = present(read_state(trained))
    state.parent.model = state.parent.model_files = ""
    write_state(trained, state)
    Mirror(trained, uri, "lpgnn").send(ended=True)
    assert {m.model_id for m in client.search_logged_models([experiment])} == before
    assert len(client.search_model_versions("name = 'mutag'")) == 1


def test_jobs_of_a_sweep_have_models_only_if_asked_for(make_trainer: MakeTrainer) -> None:
    record = make_trainer(units=1).record
    assert wants_models(record, {"tracking.models": "auto"})
    record.parent_run_id = "sweep"
    assert not wants_models(record, {"tracking.models": "auto"})
    assert wants_models(record, {"tracking.models": "all"})
    assert not wants_models(record, {})


def test_names_of_registered_models() -> None:
    assert registered_as({"tracking.register": "null"})[0] == ""
    assert registered_as({"tracking.register": "molecules"}) == ("molecules", "newest")
    assert registered_as({"tracking.register": "molecules@best"}) == ("molecules", "best")


@pytest.mark.slow
def test_a_server_gets_models_too(trained: RunFolder, server: Any, tmp_path: Path) -> None:
    """Uploads, links and registration through a server."""
    server.start()
    Mirror(trained, server.uri, "elsewhere").send(ended=True)
    from mlflow.artifacts import download_artifacts

    client = open_client(server.uri)
    places = {model_location(client, f"models:/mutag{which}") for which in ("@best", "/1")}
    assert len(places) == 1
    folder = download_artifacts(places.pop(), tracking_uri=server.uri, dst_path=str(tmp_path))
    assert [file.parent.name for file in find_networks(Path(folder))] == [
        "fold-00",
        "fold-01",
        "fold-02",
    ]
