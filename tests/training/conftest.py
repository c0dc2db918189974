"""Small batches, learners and units in training; no test sees another's runs or cores."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from torch import Tensor

from lpgnn_cli.config.compose import compose, to_typed
from lpgnn_cli.config.root import TrainConfig, schemas
from lpgnn_cli.data.batch import GraphBatch, TargetLevel
from lpgnn_cli.data.part import Part
from lpgnn_cli.model.network import DataShape, Network
from lpgnn_cli.model.transitions.base import BlockMLP, Transition
from lpgnn_cli.propagation import Propagation, build_propagation
from lpgnn_cli.propagation.lagrangian import Lagrangian
from lpgnn_cli.propagation.variables import Variables
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.training.epoch import train_epoch
from lpgnn_cli.training.evaluation import Evaluation
from lpgnn_cli.training.experiment import Experiment
from lpgnn_cli.training.fit import UnitTask

# Nothing but the folder, one core, no figures.
SOBER = ("tracking=none", "threads=1", "protocol.workers=1", "device=cpu", "figures=false")


@dataclass
class Learner:
    """A propagation with the parts that it trains on and is evaluated on."""

    propagation: Propagation
    parts: dict[str, Part]

    @property
    def network(self) -> Network:
        return self.propagation.network

    @property
    def lagrangian(self) -> Lagrangian:
        """The propagation, where states and multipliers are variables of their own."""
        assert isinstance(self.propagation, Lagrangian)
        return self.propagation

    @property
    def variables(self) -> Variables:
        return self.lagrangian.variables

    def train_epoch(self, epoch: int, batch: GraphBatch | None = None) -> dict[str, Tensor]:
        part = self.parts["train"]
        part = part if batch is None else replace(part, batch=batch)
        return train_epoch(self.propagation, epoch, part)

    def follow(self, name: str) -> None:
        self.propagation.follow(name, self.parts[name].batch)

    def evaluate(self, name: str) -> Evaluation:
        return Evaluation.of(self.propagation, name, self.parts[name])


def h_of(transition: Transition) -> BlockMLP:
    """The MLP h of a transition that has one."""
    h = transition.h
    assert isinstance(h, BlockMLP)
    return h


MakeBatch = Callable[..., GraphBatch]
MakeConfig = Callable[..., TrainConfig]
MakeLearner = Callable[..., Learner]
MakeTasks = Callable[..., list[UnitTask]]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of all runs, and a cache beside it."""
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LPGNN_SEGMENT", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@functools.cache
def _composed(choices: tuple[str, ...]) -> TrainConfig:
    return compose("train", choices)


@pytest.fixture
def make_config() -> MakeConfig:
    """The config of `lpgnn train` with these overrides, without a recipe unless that is asked."""

    def make(*overrides: str, recipe: bool = False) -> TrainConfig:
        # Composing takes its time: once for each choice of groups, to which values are added.
        words = [*SOBER, *overrides]
        choices = [word for word in words if word.split("=")[0] in schemas()]
        composed = _composed((*choices, *([] if recipe else ["recipe=none"])))
        config = OmegaConf.structured(copy.deepcopy(composed))
        values = [word for word in words if word not in choices]
        for override in OverridesParser.create().parse_overrides(values):
            OmegaConf.update(config, override.key_or_group, override.value(), merge=True)
        typed: TrainConfig = to_typed(config)
        return typed

    return make


@pytest.fixture
def make_batch() -> MakeBatch:
    """Random connected graphs of the given sizes, in double precision."""

    def make(
        sizes: Sequence[int] = (5, 6, 4),
        *,
        labels: int = 2,
        arc_labels: int = 1,
        classes: int = 2,
        level: TargetLevel = "graph",
        seed: int = 0,
    ) -> GraphBatch:
        generator = torch.Generator().manual_seed(seed)
        source, target, start = [], [], 0
        for size in sizes:
            for v in range(1, size):
                u = int(torch.randint(0, v, (), generator=generator))
                extra = int(torch.randint(0, v, (), generator=generator))
                for w in {u, extra}:
                    source += [start + w, start + v]
                    target += [start + v, start + w]
            start += size
        items = len(sizes) if level == "graph" else start

        def random(*size: int) -> Tensor:
            return torch.randn(*size, dtype=torch.float64, generator=generator)

        return GraphBatch.from_arcs(
            features=random(start, labels),
            source=torch.tensor(source),
            target=torch.tensor(target),
            arc_labels=random(len(source), arc_labels),
            graph_ptr=torch.tensor([0, *sizes]).cumsum(0),
            targets=torch.arange(items) % classes,
            target_level=level,
            num_classes=classes,
        )

    return make


@pytest.fixture
def make_learner() -> MakeLearner:
    """A learner with seeded weights on these parts; a batch stands for the part of its graphs."""

    def make(config: TrainConfig, seed: int = 0, **parts: Part | GraphBatch) -> Learner:
        torch.manual_seed(seed)
        placed = {k: p if isinstance(p, Part) else Part(p) for k, p in parts.items()}
        batch = placed["train"].batch
        sets = {name: part.batch for name, part in placed.items()}
        propagation = build_propagation(config, DataShape.of(batch), sets, like=batch.features)
        return Learner(propagation, placed)

    return make


@pytest.fixture
def make_tasks(tmp_path: Path) -> MakeTasks:
    """The units of a config, as a run in the folder `run` of this test."""

    def make(config: TrainConfig, run: str = "run") -> list[UnitTask]:
        (tmp_path / run).mkdir(exist_ok=True)
        return Experiment.prepare(config).tasks(RunFolder(tmp_path / run))

    return make
