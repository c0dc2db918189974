"""`optim.batch_nodes`: blocks of the nodes of one graph, one hop around them, nothing sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.blocks import Blocks
from lpgnn_cli.data.part import Part
from lpgnn_cli.data.targets import Judging
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.propagation import Outcome, Propagation, build_propagation
from lpgnn_cli.propagation.by_blocks import ByBlocks, numbers_that_stay
from lpgnn_cli.training.counting import TransitionCounter
from lpgnn_cli.training.epoch import train_epoch
from lpgnn_cli.training.experiment import Experiment
from lpgnn_cli.training.fit import UnitFit
from lpgnn_cli.training.scoring import TrainedUnit

from .conftest import Learner, MakeBatch, MakeConfig, MakeLearner, MakeTasks
from .test_batches import assert_equal, variables

NODES = ("dataset=karate", "state=[3]", "aggregator.hidden=[4]")
ONE_SHOT = "propagation.updates=one_shot"
BOUND = "propagation.gain=0.8"
NEIGHBOURS = "readout.neighbours=true", "readout.source=state"
RULES = {
    "gradient": [],
    "gradient, sgd": ["optim=sgd", "optim.momentum=0.9", "propagation.constraint_reduction=mean"],
    "gradient, mean": ["propagation.loss_reduction=mean", "propagation.constraint_reduction=mean"],
    "unsupervised states": ["propagation.supervise_states=false", "propagation.multiplier=element"],
    "preconditioned": [
        "propagation.state_step=preconditioned",
        "propagation.rho=0.5",
        "propagation.constraint_reduction=mean",
    ],
    "warm-up": ["propagation.warmup=2", "propagation.multiplier_start=1"],
    "one_shot": [ONE_SHOT],
    "one_shot, damped": [ONE_SHOT, "propagation.damping=0.6", "propagation.warmup=1"],
    "two layers": [ONE_SHOT, "layers=2", "state=[3,2]", "readout.layers=all"],
    "neighbours": [ONE_SHOT, *NEIGHBOURS],
    "states": [ONE_SHOT, "readout.source=state"],
}
AGGREGATORS = {
    "sum": ["aggregator=sum", BOUND],
    "sum, two layers on arcs": ["aggregator=sum", "aggregator.hidden=[4,3]"],
    "avg": ["aggregator=avg", "aggregator.own_state=false"],
    "gin": ["aggregator=gin", BOUND],
    "gcn": ["aggregator=gcn"],
    "sage": ["aggregator=sage"],
    "gat": ["aggregator=gat"],
    "none": ["aggregator=none"],
    "symmetric": [
        "aggregator=diffusion",
        "aggregator.self_loops=true",
        "aggregator.own_state=true",
    ],
    "mean": [
        "aggregator=diffusion",
        "aggregator.operator=mean",
        "aggregator.neighbour_labels=true",
    ],
    "gates": ["aggregator=diffusion", "aggregator.label_gate=true", "readout.label_gate=true"],
    "radius": ["aggregator=diffusion", "aggregator.operator=radius", "aggregator.self_loops=true"],
}


# Rules, with rates at which they come to rest.
FREE = {
    "one_shot": [ONE_SHOT],
    "gradient": [
        "optim=sgd",
        "lr.theta=0.03",
        "g=lin",
        "propagation.multiplier=element",
        "propagation.rho=1",
        "lr.state=0.2",
        "lr.multiplier=0.2",
    ],
}


@pytest.fixture
def graph(make_batch: MakeBatch) -> GraphBatch:
    """Two graphs of 25 nodes, with labels of arcs and arcs that go one way only."""
    both = make_batch((17, 8), level="node", classes=3, labels=3)
    arcs = both.arcs
    kept = (arcs.source + 2 * arcs.target) % 5 > 0
    return GraphBatch.from_arcs(
        features=both.features,
        source=arcs.source[kept],
        target=arcs.target[kept],
        arc_labels=both.arc_in[kept],
        graph_ptr=both.graph_ptr,
        targets=both.targets,
        target_level="node",
        num_classes=3,
    )


@pytest.fixture
def part(graph: GraphBatch) -> Part:
    """Some of its nodes are scored, and classes have weights."""
    weights = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    scored = torch.tensor([20, 3, 4, 0, 11, 8, 17])
    return Part(graph, scored, Judging("accuracy", weights))


@pytest.fixture
def order() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def in_blocks(learner: Learner, epoch: int, size: int, order: torch.Generator) -> dict[str, Tensor]:
    return train_epoch(learner.propagation, epoch, learner.parts["train"], None, order, size)


def pair(
    make_config: MakeConfig, make_learner: MakeLearner, part: Part, size: int, *words: str
) -> tuple[Learner, Learner]:
    """The same network on the whole graph, and in blocks."""
    whole = make_config(*NODES, *words)
    blocks = make_config(*NODES, *words, f"optim.batch_nodes={size}")
    return make_learner(whole, train=part), make_learner(blocks, train=part)


def hold_theta(learner: Learner) -> list[list[Tensor]]:
    """Let no step move the weights; the gradients that it would have gone by."""
    gradients: list[list[Tensor]] = []

    def note() -> None:
        weights = learner.network.parameters()
        gradients.append([w.new_zeros(()) if w.grad is None else w.grad.clone() for w in weights])

    learner.propagation.step_theta = note
    return gradients


def summed(steps: list[list[Tensor]], sizes: list[int]) -> list[Tensor]:
    """The gradients of an epoch whose order has the seed 0, each with the share of its block."""
    order = torch.randperm(len(sizes), generator=torch.Generator().manual_seed(0))
    shares = [sizes[number] / sum(sizes) for number in order.tolist()]
    totals: list[Tensor] = []
    for of_weight in zip(*steps, strict=True):
        parts = [share * gradient for share, gradient in zip(shares, of_weight, strict=True)]
        totals.append(torch.stack(parts).sum(0))
    return totals


@pytest.mark.parametrize("size", [1, 7, 25])
@pytest.mark.parametrize("words", [*RULES.values()], ids=[*RULES])
def test_with_theta_held_an_epoch_of_blocks_moves_all_variables_as_the_whole_graph_does(
    words: list[str],
    size: int,
    part: Part,
    make_config: MakeConfig,
    make_learner: MakeLearner,
    order: torch.Generator,
) -> None:
    whole, blocks = pair(make_config, make_learner, part, size, *words)
    hold_theta(whole), hold_theta(blocks)
    for epoch in range(1, 5):
        expected = whole.train_epoch(epoch)
        found = in_blocks(blocks, epoch, size, order)
        for name in ("accuracy", "loss", "violation_mean", "violation_max", "multiplier_norm"):
            torch.testing.assert_close(found[f"train/{name}"], expected[f"train/{name}"])
    for mine, theirs in zip(variables(whole), variables(blocks), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
        assert float(mine.abs().max()) > 0


@pytest.mark.parametrize("rule", [[ONE_SHOT], []], ids=["one_shot", "gradient"])
@pytest.mark.parametrize("words", [*AGGREGATORS.values()], ids=[*AGGREGATORS])
def test_every_transition_has_the_values_and_gradients_of_the_whole_graph(
    words: list[str],
    rule: list[str],
    part: Part,
    make_config: MakeConfig,
    make_learner: MakeLearner,
    order: torch.Generator,
) -> None:
    """Degrees, norms and radius are those of the whole graph, and the gradients of theta in all
    blocks are that of the whole, in shares."""
    whole, blocks = pair(make_config, make_learner, part, 6, *words, *rule)
    of_whole, of_blocks = hold_theta(whole), hold_theta(blocks)
    for epoch in range(1, 4):
        whole.train_epoch(epoch)
        in_blocks(blocks, epoch, 6, torch.Generator().manual_seed(0))
    for mine, theirs in zip(variables(whole), variables(blocks), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
    total = summed(of_blocks[-5:], [6, 6, 6, 6, 1])
    for found, expected in zip(total, of_whole[-1], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("words", [[ONE_SHOT], []], ids=["one_shot", "gradient"])
def test_evaluation_test_phase_and_gain_are_those_of_the_whole_graph(
    words: list[str],
    part: Part,
    make_config: MakeConfig,
    make_learner: MakeLearner,
    order: torch.Generator,
) -> None:
    words = [*words, BOUND, *NEIGHBOURS]
    whole, blocks = pair(make_config, make_learner, part, 4, *words)
    hold_theta(whole), hold_theta(blocks)
    for epoch in (1, 2):
        whole.train_epoch(epoch)
        in_blocks(blocks, epoch, 4, order)
    batch, inference = part.batch, whole.propagation.config.inference
    looks: list[Callable[[Propagation], Outcome]] = [
        lambda propagation: propagation.evaluate("train", batch),
        lambda propagation: propagation.infer(batch, inference)[0],
    ]
    for look in looks:
        expected, found = look(whole.propagation), look(blocks.propagation)
        for name in ("states", "transits", "residuals"):
            for mine, theirs in zip(getattr(expected, name), getattr(found, name), strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(expected.scores, found.scores)
        gains = [learner.propagation.gain(expected, batch) for learner in (whole, blocks)]
        torch.testing.assert_close(*gains)
    stats = [learner.propagation.infer(batch, inference)[1] for learner in (whole, blocks)]
    assert stats[0] is not None
    assert stats[1] is not None
    assert stats[0].steps == stats[1].steps > 3
    assert stats[0].converged == stats[1].converged == 1.0


def test_a_test_phase_that_does_not_settle_ends_at_the_same_best_states(
    part: Part, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    """Weights that stretch, so that the first states are the best: graph by graph."""
    whole, blocks = pair(make_config, make_learner, part, 4, ONE_SHOT, "aggregator=gin")
    for learner in (whole, blocks):
        for weight in learner.network.parameters():
            weight.data.mul_(3.0)
    inference = replace(whole.propagation.config.inference, steps=5)
    expected, found = (
        learner.propagation.infer(part.batch, inference) for learner in (whole, blocks)
    )
    torch.testing.assert_close(expected[0].states, found[0].states)
    assert expected[1] is not None
    assert found[1] is not None
    assert found[1].converged == expected[1].converged < 1
    assert found[1].violation == pytest.approx(expected[1].violation)


@pytest.mark.parametrize("rule", FREE)
def test_blocks_come_to_rest_where_the_whole_graph_does(
    rule: str, part: Part, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    """Weights that the whole graph was trained to. With them held, blocks that begin at zero end at
    the states, multipliers and gradients of theta that the whole graph ends at from elsewhere."""
    words = ["aggregator=diffusion", "propagation.gain=0.5", "propagation.loss_reduction=mean"]
    whole, blocks = pair(make_config, make_learner, part, 9, *words, *FREE[rule])
    for epoch in range(1, 21):
        whole.train_epoch(epoch)
    blocks.network.load_state_dict(whole.network.state_dict())
    of_whole, of_blocks = hold_theta(whole), hold_theta(blocks)
    # The gradient rule, slower, is not quite there by then.
    tolerance = 1e-8 if rule == "one_shot" else 1e-4
    for epoch in range(1, 301):
        of_blocks.clear()
        whole.train_epoch(epoch)
        in_blocks(blocks, epoch, 9, torch.Generator().manual_seed(0))
    for mine, theirs in zip(variables(whole), variables(blocks), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0.0, atol=tolerance)
        assert float(mine.abs().max()) > 10 * tolerance
    for mine, theirs in zip(of_whole[-1], summed(of_blocks, [9, 9, 7]), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0.0, atol=10 * tolerance)


def test_statistics_of_a_batch_norm_are_those_of_all_nodes(
    part: Part, make_config: MakeConfig, make_learner: MakeLearner
) -> None:
    words = [ONE_SHOT, "readout.norm=batch"]
    whole, blocks = pair(make_config, make_learner, part, 4, *words)
    for learner in (whole, blocks):
        states = learner.variables.states
        states.set([torch.arange(x.numel()).view_as(x).to(x).sin() for x in states.values])
        learner.propagation.take_statistics(part.batch)
    assert_close_buffers(whole, blocks)


def assert_close_buffers(mine: Learner, theirs: Learner) -> None:
    pairs = zip(mine.network.named_buffers(), theirs.network.named_buffers(), strict=True)
    for (name, a), (_, b) in pairs:
        if "running" in name:
            torch.testing.assert_close(a, b)
            assert float(a.abs().max()) > 0


def test_a_block_has_all_arcs_into_its_nodes_and_nothing_else(graph: GraphBatch) -> None:
    seen = 0
    for block in Blocks(graph, 6):
        numbers = torch.cat([torch.arange(block.first, block.stop), block.around])
        source, target = numbers[block.arcs.source], numbers[block.arcs.target]
        ptr = graph.arcs.ptr
        arcs = slice(int(ptr[block.first]), int(ptr[block.stop]))
        assert torch.equal(source, graph.arcs.source[arcs])
        assert torch.equal(target, graph.arcs.target[arcs])
        assert torch.equal(block.features, graph.features[numbers])
        assert set(block.around.tolist()) == set(source.tolist()) - set(
            range(block.first, block.stop)
        )
        assert torch.equal(block.arcs.out_degree, graph.arcs.out_degree[numbers])
        assert torch.equal(
            block.arcs.source[block.arcs.by_source].sort().values,
            block.arcs.source[block.arcs.by_source],
        )
        assert torch.equal(block.arcs.target_by_source, block.arcs.target[block.arcs.by_source])
        seen += block.num_arcs
    assert seen == graph.num_arcs


def test_every_block_comes_once_per_epoch_in_a_new_order(graph: GraphBatch) -> None:
    order = torch.Generator().manual_seed(0)
    epochs = [[block.first for block in Blocks(graph, 4).shuffled(order)] for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [[0, 4, 8, 12, 16, 20, 24]] * 2
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize(
    "words",
    [[ONE_SHOT], [], ["optim=sgd", "optim.momentum=0.5", "lr.theta=1e-5", "lr.state=1e-3"]],
    ids=str,
)
def test_a_resumed_run_in_blocks_equals_an_uninterrupted_one(
    words: list[str], make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(*NODES, "optim.batch_nodes=10", "epochs=6", "lr.theta=1e-3", *words)
    (task,) = make_tasks(config, "whole")
    whole = UnitFit(task)
    whole.fit(lambda *_: None, lambda: False)
    assert isinstance(whole.propagation, ByBlocks)
    (task,) = make_tasks(config, "halves")
    first = UnitFit(replace(task, config=replace(config, epochs=3)))
    first.fit(lambda *_: None, lambda: False)
    second = UnitFit(task)
    assert second.progress.epoch == 3
    second.fit(lambda *_: None, lambda: False)
    assert_equal(whole.propagation.state_dict(), second.propagation.state_dict())


MAPPED = "data.memory='1 KB'"


@pytest.mark.parametrize("words", [[ONE_SHOT], []], ids=["one_shot", "gradient"])
def test_mapped_files_change_no_bit_and_go_with_the_checkpoints(
    words: list[str],
    make_config: MakeConfig,
    make_tasks: MakeTasks,
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [*NODES, "optim.batch_nodes=10", "epochs=6", "lr.theta=1e-3", *words]
    (task,) = make_tasks(make_config(*words), "memory")
    in_memory = UnitFit(task)
    expected = in_memory.fit(lambda *_: None, lambda: False)
    config = make_config(*words, MAPPED)
    (task,) = make_tasks(config, "mapped")
    first = UnitFit(replace(task, config=replace(config, epochs=3)))
    first.fit(lambda *_: None, lambda: False)
    files = set((first.folder / "rows").iterdir())
    assert files
    assert (first.folder / "last.pt").stat().st_size < 60_000
    second = UnitFit(task)
    assert isinstance(second.propagation, ByBlocks)
    assert second.propagation.room.mapped > 0
    assert second.progress.epoch == 3
    result = second.fit(lambda *_: None, lambda: False)
    assert_equal(in_memory.propagation.state_dict(), second.propagation.state_dict())
    assert result.from_zero == expected.from_zero
    assert result.persistent == expected.persistent
    kept = set((first.folder / "rows").iterdir())
    assert kept
    assert not kept & files, "what no checkpoint names is gone"
    assert not list(runs.glob(".rows-*")), "mapped files have no name"

    scored = TrainedUnit(first.folder / "last.pt", None, torch.device("cpu"), "1 KB").rescore(None)
    assert scored.metrics["test/accuracy"] == expected.from_zero["accuracy"]
    assert scored.persistent["test/loss"] == expected.persistent["loss"]

    damaged = next(iter(kept))
    content = bytearray(damaged.read_bytes())
    content[7] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        UnitFit(task)
    damaged.unlink()
    with pytest.raises(UserError, match="missing"):
        UnitFit(task)


def test_a_run_that_cannot_fit_is_refused_with_its_figures(
    make_config: MakeConfig, make_tasks: MakeTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(*NODES, "optim.batch_nodes=10", MAPPED)
    needs = Experiment.prepare(config).needs
    assert needs is not None
    assert 4e8 < needs.memory < 6e8
    assert 0 < needs.disk < 1e6
    monkeypatch.setattr("lpgnn_cli.training.needs.free_memory", lambda: 10**8)
    with pytest.raises(UserError, match=r"about 4\d\d MB of memory .* 100 MB of memory are free"):
        Experiment.prepare(config)


def test_what_it_needs_grows_with_the_graph(make_config: MakeConfig, graph: GraphBatch) -> None:
    """All that training holds, measured: arrays of states and moments."""
    for words in ([ONE_SHOT], [], ["optim=sgd", "optim.momentum=0.9"], ["optim=rmsprop"]):
        config = make_config(*NODES, "optim.batch_nodes=10", "precision=float64", *words, MAPPED)
        torch.manual_seed(0)
        batch = graph
        propagation = build_propagation(
            config, DataShape.of(batch), {"train": batch}, like=batch.features
        )
        assert isinstance(propagation, ByBlocks)
        for epoch in (1, 2):
            train_epoch(propagation, epoch, Part(batch), None, None, 10)
        held = propagation.room.used + propagation.room.mapped
        counted = batch.num_nodes * numbers_that_stay(config, [3]) * 8
        assert 0.8 * counted <= held <= counted


@pytest.mark.parametrize("memory", ["8", "GB", "eight GB", "8 bits", "-1 GB"])
def test_a_memory_that_is_no_size_is_refused(memory: str, make_config: MakeConfig) -> None:
    with pytest.raises(UserError, match=r"data\.memory must be a size such as 8 GB"):
        make_config(f"data.memory='{memory}'")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["propagation=layers"], "propagation=layers, which needs the neighbours of neighbours"),
        (["propagation=fixed_point"], "propagation=fixed_point"),
        (["propagation.updates=ages"], "propagation.updates=ages"),
        (["propagation.states=frozen"], "propagation.states=frozen"),
        (["propagation.hand_up=transition"], "propagation.hand_up=state"),
        (["propagation.gain=0.9", "propagation.gain_held_by=penalty"], "gain_held_by=weights"),
        (["optim.batch_graphs=1"], "exclude each other"),
        (["dataset=clique"], "protocol=holdout does not divide"),
        (["dataset=mutag"], "protocol=kfold does not divide"),
        (["readout.neighbours=true", "readout.source=transition"], "readout.source=state"),
        (["inference=anderson"], "inference=fixed_point"),
        (["inference=lagrangian"], "inference=fixed_point"),
    ],
    ids=str,
)
def test_what_cannot_be_done_in_blocks_is_refused_in_one_sentence(
    words: list[str], sentence: str, make_config: MakeConfig
) -> None:
    with pytest.raises(UserError, match=r"optim\.batch_nodes") as error:
        make_config("dataset=karate", "optim.batch_nodes=10", *words)
    assert sentence in str(error.value)


@pytest.mark.parametrize("aggregator", ["median", "selection"])
def test_transitions_over_several_hops_are_refused(
    aggregator: str, make_config: MakeConfig, make_tasks: MakeTasks
) -> None:
    config = make_config(*NODES, "optim.batch_nodes=10", f"aggregator={aggregator}")
    with pytest.raises(UserError, match=f"aggregator={aggregator}"):
        make_tasks(config)


@pytest.mark.parametrize("blocks", [[], ["optim.batch_nodes=7"]], ids=["whole", "blocks"])
@pytest.mark.parametrize(
    ("words", "passes"),
    [([], 1), (["propagation.supervise_states=false"], 2), ([ONE_SHOT], 1)],
    ids=["gradient", "unsupervised", "one_shot"],
)
def test_an_epoch_goes_back_through_the_transition_once_for_each_seed(
    words: list[str],
    passes: int,
    blocks: list[str],
    part: Part,
    make_config: MakeConfig,
    make_learner: MakeLearner,
) -> None:
    config = make_config(*NODES, *words, *blocks)
    learner = make_learner(config, train=part.batch)
    counter = TransitionCounter(learner.network)
    with counter.counting(part.batch.num_nodes) as counted:
        train_epoch(learner.propagation, 1, part, None, None, config.optim.batch_nodes)
    assert (counted.forward, counted.backward) == pytest.approx((1, passes))
