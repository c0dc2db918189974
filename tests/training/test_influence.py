"""How far labels count, and what an epoch costs in evaluations of f_a."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.part import Part
from lpgnn_cli.training.counting import TransitionCounter
from lpgnn_cli.training.influence import Influence, hops_to, measure_influence

from ..conftest import present
from .conftest import MakeBatch, MakeConfig, MakeLearner, MakeTasks

SOBER = ("tracking=none", "quiet=true", "device=cpu", "threads=1", "protocol.workers=1")
LENGTH = 8


@pytest.fixture
def chain() -> GraphBatch:
    """Two chains, both ways, with random labels on their nodes."""
    before = torch.tensor([i for i in range(2 * LENGTH) if i % LENGTH != LENGTH - 1])
    return GraphBatch.from_arcs(
        features=torch.randn(2 * LENGTH, 3, generator=torch.Generator().manual_seed(0)),
        source=torch.cat([before, before + 1]),
        target=torch.cat([before + 1, before]),
        graph_ptr=torch.tensor([0, LENGTH, 2 * LENGTH]),
        targets=torch.arange(2 * LENGTH) % 2,
        target_level="node",
        num_classes=2,
    )


def test_hops_follow_the_arcs(chain: GraphBatch) -> None:
    assert hops_to(chain, torch.tensor([2])).tolist() == [2, 1, 0, 1, 2, 3, 4, 5] + [-1] * LENGTH
    one_way = replace(
        chain,
        arcs=type(chain.arcs).from_sorted(torch.tensor([0, 1]), torch.tensor([1, 2]), 2 * LENGTH),
    )
    assert hops_to(one_way, torch.tensor([2])).tolist()[:4] == [2, 1, 0, -1]


def test_reach_is_where_influence_falls_below_a_hundredth() -> None:
    assert Influence([1.0, 0.5, 0.02, 0.009, 0.5], [1] * 5).reach == 2
    assert Influence([0.0, 1.0, 0.5, 0.001], [1] * 4).reach == 2, "own labels need not enter"
    assert Influence([1.0, 0.5, 0.2], [1] * 3).reach == 2, "as far as the graph goes"
    assert Influence([1.0], [1]).reach == 0


@pytest.mark.parametrize("layers", [1, 3])
def test_layers_see_as_many_hops_as_there_are_of_them(
    layers: int, chain: GraphBatch, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    words = "propagation=layers", "aggregator=gin", f"layers={layers}", "state=[8]"
    config = make_config(*words)
    learner = make_learner(config, train=chain)
    found = present(measure_influence(learner.propagation, Part(chain), config.inference))
    assert all(value > 0 for value in found.by_hops[: layers + 1])
    assert not any(found.by_hops[layers + 1 :])
    assert found.reach <= layers


@pytest.mark.parametrize("aggregator", ["sum", "gcn"])
@pytest.mark.parametrize("propagation", ["lagrangian", "fixed_point"])
def test_influence_is_that_of_the_test_phase(
    propagation: str,
    aggregator: str,
    chain: GraphBatch,
    make_config: MakeConfig,
    make_learner: MakeLearner,
) -> None:
    """Labels are moved a little, states found again from zero, and scores compared."""
    words = [f"propagation={propagation}", f"aggregator={aggregator}", "precision=float64"]
    words += ["propagation.gain=0.7", "inference=fixed_point", "inference.steps=400"]
    words += ["inference.tolerance=1e-13", "readout.hidden=[]"]
    if propagation == "fixed_point":
        words += ["propagation.tolerance=1e-13", "propagation.max_iterations=400"]
    config = make_config(*words)
    batch = replace(chain, features=chain.features.double())
    learner = make_learner(config, train=batch)
    weights = torch.zeros(batch.num_nodes, 2, dtype=torch.float64)
    weights[3] = torch.tensor([1.0, -1.0])
    pull = learner.propagation.pullback(batch, config.inference)
    assert pull is not None
    gradient = pull(weights)

    def score(features: torch.Tensor) -> float:
        outcome, _ = learner.propagation.infer(batch.with_features(features), config.inference)
        return float((outcome.scores * weights).sum())

    for node in (3, 4, 6):
        step = torch.zeros_like(batch.features)
        step[node, 1] = 1e-5
        moved = score(batch.features + step) - score(batch.features - step)
        assert moved / 2e-5 == pytest.approx(float(gradient[node, 1]), rel=1e-3, abs=1e-9)
    assert not gradient[LENGTH:].any(), "other graphs do not count"


def test_alike_labels_are_told_apart(
    make_config: MakeConfig, make_learner: MakeLearner, chain: GraphBatch
) -> None:
    """Labels that many nodes share are computed with once; their gradients are still their own."""
    alike = replace(chain, features=torch.ones(2 * LENGTH, 3))
    config = make_config("aggregator=sum", "propagation.gain=0.7")
    learner = make_learner(config, train=alike)
    found = present(measure_influence(learner.propagation, Part(alike), config.inference))
    assert found.by_hops[0] > 0
    assert found.by_hops[1] > found.by_hops[4]


def test_without_labels_there_is_nothing_to_count(
    make_config: MakeConfig, make_learner: MakeLearner, chain: GraphBatch
) -> None:
    bare = replace(chain, features=torch.zeros(2 * LENGTH, 0))
    config = make_config("propagation=layers")
    learner = make_learner(config, train=bare)
    assert measure_influence(learner.propagation, Part(bare), config.inference) is None


@pytest.mark.parametrize(
    ("words", "forward", "backward"),
    [
        (["propagation=layers", "aggregator=gin", "layers=3"], 3, 3),
        (["propagation.updates=one_shot"], 1, 1),
        (["propagation.updates=gradient"], 1, 1),
        (["propagation.updates=one_shot", "layers=2"], 2, 2),
        (
            [
                "propagation=fixed_point",
                "propagation.max_iterations=5",
                "propagation.tolerance=1e-12",
            ],
            6,
            5,
        ),
    ],
)
def test_evaluations_of_the_transition_are_counted(
    words: tuple[str, ...],
    forward: int,
    backward: int,
    make_config: MakeConfig,
    make_learner: MakeLearner,
    make_batch: MakeBatch,
) -> None:
    batch = make_batch()
    learner = make_learner(make_config(*words), train=batch)
    counter = TransitionCounter(learner.network)
    learner.train_epoch(1)  # states leave zero
    assert counter.forward == 0
    with counter.counting(batch.num_nodes):
        learner.train_epoch(2)
    assert counter.forward == forward
    assert counter.backward == pytest.approx(backward, abs=1)
    assert counter.metrics()["transitions_per_epoch"] == counter.forward + counter.backward


def test_batches_count_as_their_share(make_config: MakeConfig, make_tasks: MakeTasks) -> None:
    from lpgnn_cli.training.fit import UnitFit

    words = "propagation=layers", "aggregator=gin", "layers=2", "optim.batch_graphs=50", "epochs=1"
    fit = UnitFit(make_tasks(make_config(*words))[0])
    metrics = fit._epoch(1)
    assert metrics["train/transitions_per_epoch"] == pytest.approx(4)
    assert metrics["train/transitions_backward"] == pytest.approx(2)


def test_a_run_and_its_evaluation_say_it(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["dataset=mutag", "epochs=3", "protocol.folds=2", "inference.steps=20"]
    assert main(["train", *words, *SOBER]) == 0
    said = capsys.readouterr().out
    assert "f_a per epoch" in said
    assert "labels count over" in said
    (run,) = (runs / "train").glob("*/*")
    assert (run / "figures" / "influence.png").is_file()
    assert (run / "units" / "fold-00" / "influence.csv").is_file()
    assert not (run / "units" / "fold-01" / "influence.csv").is_file(), "one unit is enough"
    summary = json.loads((run / "summary.json").read_text())
    with (run / "units" / "fold-00" / "influence.csv").open(newline="") as file:
        rows = [
            (int(r["hops"]), float(r["influence"]), int(r["pairs"])) for r in csv.DictReader(file)
        ]
    assert [hops for hops, _, _ in rows] == list(range(len(rows)))
    found = Influence([value for _, value, _ in rows], [pairs for _, _, pairs in rows])
    assert summary["inference/reach_mean"] == found.reach
    assert summary["train/transitions_per_epoch_mean"] >= 2
    assert main(["eval", f"run={run}", "tracking=none", "threads=1"]) == 0
    said = capsys.readouterr().out
    assert "reach" in said.splitlines()[0]
    assert "share of the start" in said
