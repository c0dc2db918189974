"""The package of docs/plugins.md, installed by pip and used through the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Lpgnn = Callable[..., subprocess.CompletedProcess[str]]

CHOICES = ["aggregator=leaky", "g=huber", "dataset=rings"]
QUICK = ["protocol.folds=2", "state=[4]", "tracking=none", "figures=false", "device=cpu"]


@pytest.fixture
def python(installed: Path, tmp_path: Path) -> Lpgnn:
    """Python in a folder of its own, with the plug-in installed."""
    paths = [str(installed), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment |= {"COLUMNS": "100", "OMP_WAIT_POLICY": "passive"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, env=environment
        )

    return run


@pytest.fixture
def lpgnn(python: Lpgnn) -> Lpgnn:
    return lambda *words: python("-m", "lpgnn_cli", *words)


def only_run(folder: Path, command: str) -> Path:
    (record,) = folder.glob(f"runs/{command}/*/*/run.json")
    return record.parent


def test_train_in_worker_processes_resume_and_evaluate(lpgnn: Lpgnn, tmp_path: Path) -> None:
    words = [*CHOICES, "aggregator.keep=0.5", "dataset.features=degree", *QUICK]
    done = lpgnn("train", *words, "epochs=2", "protocol.workers=2")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    run = only_run(tmp_path, "train")
    config = (run / "config.yaml").read_text()
    assert "keep: 0.5" in config
    assert "lpgnn_leaky" not in config, "a stored config names no code"

    done = lpgnn("train", f"resume={run}", "epochs=4")
    assert done.returncode == 0, done.stderr
    rows = (run / "units" / "fold-00" / "metrics.csv").read_text().splitlines()
    assert len(rows) == 1 + 4
    trained = json.loads((run / "summary.json").read_text())["honest/accuracy_mean"]

    done = lpgnn("eval", f"run={run}", "device=cpu", "tracking=none")
    assert done.returncode == 0, done.stderr
    scored = json.loads((only_run(tmp_path, "eval") / "summary.json").read_text())
    assert scored["eval/accuracy_mean"] == trained


SCRIPT = """
import os, sys
from lpgnn_cli.cli import main

def said(*words):
    print(">>>", *words, flush=True)
    print("exit", main(list(words)), flush=True)

said("train", "aggregator=leaky", "g=huber", "dataset=rings", "--help")
said("train", "aggregator=leeky", "--cfg", "job")
said("train", "aggregator=leaky", "aggregator.keep=1.5")
said("train", "aggregator=leaky", "aggregator.kep=1", "--cfg", "job")
said("train", "aggregator=leaky", "aggregator.hidden=[0]")
said("train", "aggregator=gin", "aggregator.keep=1", "--cfg", "job")
said("doctor")
said("data", "list")
for line in ("lpgnn train aggregator=le", "lpgnn train aggregator=leaky aggregator.k"):
    os.environ["COMP_LINE"] = line
    said("-sc", "query=bash")
"""


def test_help_completion_and_mistakes_are_those_of_any_option(python: Lpgnn) -> None:
    done = python("-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    answers = dict(part.split("\n", 1) for part in done.stdout.split(">>> ")[1:])
    helped = answers["train aggregator=leaky g=huber dataset=rings --help"]
    assert "[leaky]" in helped
    assert "f_a(v) = sigma(h(keep z_v + (1 - keep) mean of z_u)), z = [x, l]." in helped
    for line in (
        "aggregator.keep=0.3             Weight of the node itself.",
        "aggregator.hidden=[32]          Hidden layer sizes of h.",
        "g.delta=0.1                     Where it becomes linear.",
        "dataset.graphs=40               Number of graphs.",
        "dataset.positional=0            Laplacian eigenvectors appended",
    ):
        assert line in helped
    assert done.stderr.splitlines() == [
        "lpgnn: aggregator has no option leeky. Did you mean leaky? Options: avg, diffusion, gat, "
        "gcn, gin, leaky, median, none, sage, selection, sum.",
        "lpgnn: aggregator.keep must be at least 0 and at most 1, not 1.5.",
        "lpgnn: there is no setting aggregator.kep. Did you mean aggregator.keep, aggregator.name "
        "or aggregator.hidden?",
        "lpgnn: aggregator.hidden[0] must be at least 1, not 0.",
        "lpgnn: aggregator=gin has no setting keep; aggregator=leaky has.",
    ]
    plugin = "lpgnn-leaky 0.1"
    assert f"{plugin}: brings aggregator=leaky, dataset=rings, g=huber" in answers["doctor"]
    (row,) = [line for line in answers["data list"].splitlines() if line.startswith("rings")]
    assert plugin in row
    completions = done.stdout.rsplit(">>> ", 2)[1:]
    assert "aggregator=leaky" in completions[0].split()
    assert "aggregator.keep=" in completions[1].split()


def test_a_sweep_finds_it_in_its_jobs(lpgnn: Lpgnn, tmp_path: Path) -> None:
    words = ["g=squared,huber", "aggregator=leaky", "dataset=karate", "epochs=1", "state=[2]"]
    done = lpgnn("sweep", *words, "tracking=none", "device=cpu")
    assert done.returncode == 0, done.stderr
    jobs = tmp_path.glob("runs/sweep/jobs/*/run.json")
    states = [json.loads(job.read_text())["state"] for job in jobs]
    assert states == ["finished", "finished"]
