"""The same numbers whatever the machine: neither cores nor workers change a figure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.config.compose import compose
from lpgnn_cli.data.caching import load_dataset_once
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.training.experiment import Experiment

# More than 100,000 arcs, from where torch divides sums among threads.
LARGE = [
    "dataset=clique",
    "dataset.graphs=160",
    "dataset.nodes=50",
    "dataset.subgraph_nodes=5",
    "dataset.arc_probability=0.4",
    "state=[4]",
    "aggregator.hidden=[4]",
    "protocol=kfold",
    "protocol.folds=2",
    "inference.steps=2",
    "epochs=2",
    "device=cpu",
]
SOBER = ["tracking=none", "figures=false", "quiet=true"]


def figures(root: Path) -> dict[str, list[dict[str, float]]]:
    (record,) = root.glob("train/*/*/run.json")
    run = RunFolder(record.parent)
    return {
        unit.name: [{**row, "time": 0} for row in run.read_metrics(unit.name)]
        for unit in run.read_record().units
    }


@pytest.mark.slow
@pytest.mark.ci
def test_results_do_not_depend_on_workers_or_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = compose("train", LARGE)
    assert load_dataset_once(config.dataset, None, 0).batch.num_arcs > 100_000
    threads = torch.get_num_threads()
    found = []
    try:
        for number, (workers, cores) in enumerate([(1, 1), (1, 2), (2, 2)]):
            torch.set_num_threads(cores)  # as torch has it where there are so many
            monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / str(number)))
            assert main(["train", *LARGE, *SOBER, f"protocol.workers={workers}"]) == 0
            found.append(figures(tmp_path / str(number)))
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


def test_threads_are_one_unless_they_are_asked_for() -> None:
    for words, threads in ([], 1), (["threads=2"], 2), (["protocol.workers=2"], 1):
        assert Experiment.prepare(compose("train", [*LARGE, *words])).threads == threads
    torch.set_num_threads(1)
