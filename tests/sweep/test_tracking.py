"""In MLflow a sweep is a run, its jobs are beneath it, and their units beneath them."""

from __future__ import annotations

import pytest

from ..conftest import present
from .conftest import Sweeper


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning:mlflow")
@pytest.mark.filterwarnings("ignore:The ``noload``:DeprecationWarning")
@pytest.mark.parametrize("mirror", ["sweep", "job"])
def test_jobs_are_beneath_the_sweep(sweeper: Sweeper, mirror: str) -> None:
    from lpgnn_cli.tracking.store import open_client

    words = ["lr.theta=0.01,0.1", "epochs=3", "tracking=mlflow", f"sweep.mirror={mirror}"]
    code, said = sweeper.run(words)
    assert code == 0, said
    client = open_client(f"sqlite:///{sweeper.root / 'mlflow.db'}")
    experiment = present(client.get_experiment_by_name("lpgnn"))
    runs = client.search_runs([experiment.experiment_id])
    parents = {run.info.run_id: run.data.tags.get("mlflow.parentRunId", "") for run in runs}
    (sweep,) = [run for run in runs if not parents[run.info.run_id]]
    jobs = [run for run in runs if parents[run.info.run_id] == sweep.info.run_id]
    assert {run.data.params["lr.theta"] for run in jobs} == {"0.01", "0.1"}
    assert len(runs) == 1 + 2 + 2
    assert sweep.data.metrics["jobs_finished"] == 2
    files = {file.path for file in client.list_artifacts(sweep.info.run_id)}
    assert {"leaderboard.csv", "leaderboard.md"} <= files
    assert {run.info.status for run in runs} == {"FINISHED"}
