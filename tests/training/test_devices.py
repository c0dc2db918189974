"""Where a unit computes: what is refused, how GPUs are shared, and that nothing assumes a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from lpgnn_cli.data.batch import GraphBatch, TargetLevel
from lpgnn_cli.errors import UserError
from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.training import execute
from lpgnn_cli.training.device import autocast, check_precision, computing_clock, resolve_device
from lpgnn_cli.training.execute import plan_workers
from lpgnn_cli.training.fit import UnitFit
from lpgnn_cli.training.parts import place

from .conftest import MakeBatch, MakeConfig, MakeLearner, MakeTasks


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """As if there were so many CUDA devices."""

    def pretend(count: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    return pretend


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def pretend(there: bool) -> None:
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: there)

    return pretend


def test_auto_takes_the_best_there_is(
    gpus: Callable[[int], None], metal: Callable[[bool], None]
) -> None:
    for count, mps, expected in ((2, True, "cuda"), (0, True, "mps"), (0, False, "cpu")):
        gpus(count)
        metal(mps)
        assert resolve_device("auto") == torch.device(expected)


def test_a_device_that_is_not_there_is_refused(
    gpus: Callable[[int], None], metal: Callable[[bool], None]
) -> None:
    gpus(0)
    metal(False)
    for name, sentence in {
        "tpu": "device=tpu is not known; use auto, cpu, cuda, cuda:N or mps.",
        "cuda:x": "device=cuda:x is not known; use auto, cpu, cuda, cuda:N or mps.",
        "cuda": "device=cuda: torch finds no CUDA device here; use device=cpu.",
        "cuda:1": "device=cuda:1: torch finds no CUDA device here; use device=cpu.",
        "mps": "device=mps: torch finds no Metal device here; use device=cpu.",
    }.items():
        with pytest.raises(UserError) as refused:
            resolve_device(name)
        assert str(refused.value) == sentence
    gpus(2)
    with pytest.raises(UserError) as refused:
        resolve_device("cuda:2")
    assert str(refused.value) == "device=cuda:2: the CUDA devices here go from cuda:0 to cuda:1."
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    assert resolve_device("cuda") == torch.device("cuda")
    assert resolve_device("cpu") == torch.device("cpu")


def test_a_precision_that_a_device_does_not_offer_is_refused(make_config: MakeConfig) -> None:
    config = make_config()
    cpu, cuda, mps = map(torch.device, ("cpu", "cuda", "mps"))
    for precision, device, sentence in (
        ("bf16", cpu, "precision=bf16 needs a CUDA device, not cpu; use precision=float32."),
        ("bf16", mps, "precision=bf16 needs a CUDA device, not mps; use precision=float32."),
        ("float64", mps, "precision=float64 is not offered by Metal; use precision=float32."),
    ):
        config.precision = precision
        with pytest.raises(UserError) as refused:
            check_precision(config, device)
        assert str(refused.value) == sentence
    for precision, device in (
        ("bf16", cuda),
        ("float64", cpu),
        ("float64", cuda),
        ("float32", mps),
    ):
        config.precision = precision
        check_precision(config, device)


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_precision_is_that_of_the_tensors_or_of_autocast(
    make_config: MakeConfig, make_batch: MakeBatch
) -> None:
    config, cpu = make_config(), torch.device("cpu")
    for precision, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        config.precision = precision
        placed = place(make_batch(), config, cpu)
        assert {placed.features.dtype, placed.arc_in.dtype, placed.arc_out.dtype} == {dtype}
        with autocast(config, cpu):
            assert not torch.is_autocast_enabled("cpu")
    config.precision = "bf16"
    assert place(make_batch(), config, cpu).features.dtype == torch.float32
    context = autocast(config, torch.device("cuda"))
    assert isinstance(context, torch.autocast)
    assert (context.device, context.fast_dtype) == ("cuda", torch.bfloat16)


def test_float64_trains_in_float64(make_config: MakeConfig, make_tasks: MakeTasks) -> None:
    config = make_config("dataset=clique", "dataset.graphs=4", "precision=float64", "epochs=1")
    (task,) = make_tasks(config)
    fit = UnitFit(task)
    assert {p.dtype for p in fit.propagation.network.parameters()} == {torch.float64}
    assert isinstance(fit.propagation, Lagrangian)
    assert {x.dtype for x in fit.propagation.states_of("train")} == {torch.float64}
    fit.propagation.train_step(1, fit.parts["train"])


def test_one_fold_runs_on_each_gpu(
    gpus: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    make_config: MakeConfig,
    make_tasks: MakeTasks,
) -> None:
    gpus(3)
    cuda, second, cpu = map(torch.device, ("cuda", "cuda:1", "cpu"))
    assert plan_workers("auto", 10, cuda) == 3
    assert plan_workers("auto", 2, cuda) == 2
    assert plan_workers("auto", 10, second) == 1, "the one that was named"
    assert plan_workers("6", 10, cuda) == 6
    assert plan_workers("6", 4, cuda) == 4
    assert plan_workers("1", 10, cpu) == 1
    assert plan_workers("auto", 10, torch.device("mps")) == 1
    monkeypatch.setattr(execute, "cores", lambda: 8)
    assert plan_workers("auto", 10, cpu) == 8
    assert plan_workers("auto", 1, cpu) == 1

    task = make_tasks(make_config("dataset=clique", "dataset.graphs=3"))[0]
    on_cuda = replace(task, device="cuda")
    placed = [execute._placed(on_cuda, slot).device for slot in range(6)]
    assert placed == ["cuda:0", "cuda:1", "cuda:2", "cuda:0", "cuda:1", "cuda:2"]
    assert execute._placed(replace(task, device="cuda:1"), 2).device == "cuda:1"
    assert execute._placed(task, 2).device == "cpu"


# On torch's meta device every operation runs but for the numbers, and one that meets a tensor of
# the CPU fails: a path that makes a tensor without saying where shows itself.

PATHS = {
    "gradient": [],
    "gradient, K=2": ["layers=2", "state=[5,3]", "readout.layers=all", "g=abs_eps"],
    "element, rho, mean": [
        "propagation.multiplier=element",
        "propagation.rho=1",
        "propagation.constraint_reduction=mean",
        "propagation.supervise_states=false",
    ],
    "one_shot": ["propagation.updates=one_shot"],
    "frozen": ["propagation.states=frozen"],
    "penalty": ["propagation.gain=0.9", "propagation.gain_held_by=penalty"],
    "ages": ["propagation.updates=ages", "propagation.ages=3"],
    "preconditioned": ["propagation.state_step=preconditioned", "propagation.restart=0.1"],
    "gain": ["propagation.gain=0.9"],
    "gain, diffusion": ["propagation.gain=0.9", "aggregator=diffusion"],
    "anderson": ["inference=anderson"],
    "iteration": ["inference=fixed_point"],
    "avg": ["aggregator=avg", "aggregator.output_activation=tanh"],
    "gin": ["aggregator=gin"],
    "gcn": ["aggregator=gcn"],
    "sage": ["aggregator=sage"],
    "gat": ["aggregator=gat"],
    "selection": ["aggregator=selection"],
    "layers": ["propagation=layers", "aggregator=none", "readout.norm=batch"],
    "sgd": ["optim=sgd", "optim.momentum=0.9"],
}


@pytest.mark.parametrize("level", ["graph", "node"])
@pytest.mark.parametrize("path", PATHS)
def test_no_path_assumes_a_cpu(
    path: str,
    level: TargetLevel,
    make_config: MakeConfig,
    make_batch: MakeBatch,
    make_learner: MakeLearner,
) -> None:
    batch: GraphBatch = make_batch(level=level)
    train, test = batch.to("meta"), batch.subset(torch.tensor([1, 0])).to("meta")
    learner = make_learner(make_config(*PATHS[path]), train=train, test=test)
    for epoch in (1, 2):
        figures = learner.train_epoch(epoch, train)
        learner.follow("test")
        outcome = learner.evaluate("test").outcome
    assert all(value.is_meta for value in figures.values())
    assert outcome.scores.is_meta
    assert outcome.scores.shape == (2 if level == "graph" else 11, 2)
    learnt = [p for p in learner.network.parameters() if p.requires_grad]
    assert all(p.is_meta and p.grad is not None for p in learnt)
    learner.propagation.load_state_dict(learner.propagation.state_dict())


def test_other_work_does_not_count_as_computing_on_one_thread() -> None:
    processor = computing_clock(torch.device("cpu"), threads=1)
    wall = computing_clock(torch.device("cpu"), threads=2)
    before = processor(), wall()
    time.sleep(0.2)
    assert processor() - before[0] < 0.1
    assert wall() - before[1] >= 0.2
