"""An experiment: a config becomes units, their data, and a run folder that holds the results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from omegaconf import OmegaConf

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.config.model import AGGREGATORS
from lpgnn_cli.config.registry import must_stay_here
from lpgnn_cli.config.restore import restore_config
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.training import NestedConfig, ValidatedConfig
from lpgnn_cli.credentials import redact
from lpgnn_cli.data import Dataset, Split, fingerprint_splits, make_splits
from lpgnn_cli.data.caching import load_dataset_once
from lpgnn_cli.data.example import describe_data
from lpgnn_cli.data.splits import NestedSplit
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import ACCURACY, CLASSES, NUMBERS
from lpgnn_cli.names import as_name
from lpgnn_cli.ops import backend
from lpgnn_cli.runfolder import (
    FINISHED,
    RUNNING,
    RunFolder,
    RunRecord,
    Unit,
    runs_root,
)
from lpgnn_cli.stored import read_yaml
from lpgnn_cli.training.device import check_precision, resolve_device
from lpgnn_cli.training.execute import plan_workers
from lpgnn_cli.training.fit import UnitTask
from lpgnn_cli.training.fitting import fitted
from lpgnn_cli.training.needs import Needs, check_needs
from lpgnn_cli.training.schedule import patience_of, selecting
from lpgnn_cli.training.suited import length_of, suited
from lpgnn_cli.version import __version__


@dataclass(frozen=True)
class Fold:
    """One unit with its data."""

    unit: Unit
    dataset: Dataset
    split: Split


@dataclass(frozen=True)
class Experiment:
    """A config, its epochs and layers settled, and all its units."""

    config: TrainConfig
    folds: list[Fold]
    device: torch.device
    workers: int
    # What it was found to need, where that may be much.
    needs: Needs | None = None

    @classmethod
    def prepare(cls, config: TrainConfig) -> Experiment:
        """Load the data and split it; what the user must put right fails here, before any work."""
        device = resolve_device(config.device)
        check_precision(config, device)
        # Eigenvectors and the like are computed here, before there are units.
        torch.set_num_threads(config.threads or 1)
        folds = make_folds(config)
        config = suited(config, folds[0].dataset)
        check_judging(config, folds[0].dataset)
        check_node_batches(config)
        wanted = "1" if must_stay_here(config) else config.protocol.workers
        workers = plan_workers(wanted, len(folds), device)
        needs = check_needs(config, (fold.dataset.batch for fold in folds), workers)
        return cls(config, folds, device, workers, needs)

    @property
    def units(self) -> list[Unit]:
        return [fold.unit for fold in self.folds]

    @property
    def dataset_fingerprint(self) -> str:
        return self.folds[0].dataset.fingerprint()

    @property
    def split_fingerprint(self) -> str:
        return fingerprint_splits([fold.split for fold in self.folds])

    @property
    def threads(self) -> int:
        """Of one unit: one unless more are asked for, as sums depend on how many share them.

        So the figures of a run are the same on any number of cores and with any number of workers.
        """
        return self.config.threads or 1

    def config_of(self, fold: Fold) -> TrainConfig:
        """What its data makes of the config."""
        return fitted(self.config, fold.dataset, fold.split)

    def tasks(self, run: RunFolder) -> list[UnitTask]:
        """The units that are not finished yet."""
        threads = self.threads
        history_limit = self.config.rescore_mb * 2**20 // len(self.folds)
        dataset_fingerprint, split_fingerprint = self.dataset_fingerprint, self.split_fingerprint
        return [
            UnitTask(
                unit=fold.unit,
                config=self.config_of(fold),
                dataset=fold.dataset,
                split=fold.split,
                run=run.path,
                device=str(self.device),
                threads=threads,
                dataset_fingerprint=dataset_fingerprint,
                split_fingerprint=split_fingerprint,
                history_limit=history_limit,
            )
            for fold in self.folds
            if not _is_finished(run, fold.unit, self.config)
        ]


def make_folds(config: TrainConfig) -> list[Fold]:
    """Every fold with every seed; datasets that are generated are made anew for each seed."""
    folds: list[Fold] = []
    dataset: Dataset | None = None
    for repeat in range(config.protocol.repeats):
        seed = config.seed + repeat
        if dataset is None or dataset.seeded:
            dataset = load_dataset_once(config.dataset, config.data.root, seed)
        splits = make_splits(config.protocol, dataset, config.seed)
        suffix = f"-seed-{repeat}" if config.protocol.repeats > 1 else ""
        for index, split in enumerate(splits):
            fold, inner = index, ""
            if isinstance(split, NestedSplit):
                fold = split.fold
                inner = "" if split.inner is None else f"-inner-{split.inner}"
                if not _is_inner(config) and selecting(config) is None:
                    split = split.without_validation()
            unit = Unit(f"fold-{fold:02d}{inner}{suffix}", fold, seed)
            folds.append(Fold(unit, dataset, split))
    return folds


def _is_inner(config: TrainConfig) -> bool:
    """Whether the units are inner parts, whose validation part is what they are scored on."""
    return isinstance(config.protocol, NestedConfig) and config.protocol.selects


def check_judging(config: TrainConfig, dataset: Dataset) -> None:
    """Refuse a metric, or a rule of selection, that is not for targets of this kind."""
    dataset.judged_by(config.metric)
    if config.class_weights != "none" and dataset.batch.task == NUMBERS:
        raise UserError(
            f"class_weights={config.class_weights} is for classes and labels, and {dataset.name} "
            "has numbers: leave it out."
        )
    by_accuracy = isinstance(config.protocol, ValidatedConfig) and (
        config.protocol.select == ACCURACY.name
    )
    if by_accuracy and dataset.batch.task != CLASSES:
        raise UserError(
            f"protocol.select=accuracy is for classes, and {dataset.name} has "
            f"{dataset.batch.task}: use metric or loss."
        )


def check_node_batches(config: TrainConfig) -> None:
    """Refuse to take some nodes at a time where that is not enough for their transition."""
    transition = AGGREGATORS.implementation(config.aggregator)
    if config.optim.batch_nodes is not None and not transition.of_some_nodes:
        raise UserError(
            f"optim.batch_nodes is not for aggregator={config.aggregator.name}, which looks beyond "
            "the neighbours of a node: take another aggregator, or no batches of nodes."
        )


def start_run(experiment: Experiment, run: RunFolder | None = None) -> tuple[RunFolder, RunRecord]:
    """A new run folder (or the one that a sweep gives its job) with its config and its record."""
    config = experiment.config
    name = config.name or default_name(config)
    run = run or RunFolder.create(runs_root(), "train", name)
    write_atomically(run.config_path, OmegaConf.to_yaml(OmegaConf.structured(config)))
    first = experiment.folds[0].dataset
    write_atomically(run.data_path, json.dumps(describe_data(first)))
    record = new_record("train", name, config, experiment.device, experiment.units)
    record.dataset_fingerprint = experiment.dataset_fingerprint
    record.split_fingerprint = experiment.split_fingerprint
    return run, record


def new_record(
    command: str, name: str, config: TrainConfig, device: torch.device, units: list[Unit]
) -> RunRecord:
    """What runs where, from now on."""
    return RunRecord(
        id=uuid.uuid4().hex,
        command=command,
        name=name,
        argv=[redact(word) for word in sys.argv[1:]],
        version=__version__,
        started=time.time(),
        git_commit=git_commit(),
        device=str(device),
        segment_backend=backend()[0],
        dataset=config.dataset.name,
        units=units,
        versions=library_versions(),
    )


def reopen_run(path: str, epochs: int | None) -> tuple[RunFolder, RunRecord, Experiment]:
    """An interrupted run with the config it was started with, and more epochs if that is wished.

    Whoever reopens it holds its lock.
    """
    run = RunFolder.open(path)
    record = run.read_record()
    if record.command != "train":
        raise UserError(
            f"{path} is of lpgnn {record.command}: resume= goes on with runs of lpgnn train alone."
        )
    config = read_config(run)
    others = epochs is not None and epochs != config.epochs
    if others:
        config.epochs = epochs
        _check_length(run, record, length_of(config))
    experiment = Experiment.prepare(config)
    if experiment.dataset_fingerprint != record.dataset_fingerprint:
        raise UserError(
            f"{path} was trained on other data: the dataset now has the fingerprint "
            f"{experiment.dataset_fingerprint[:12]}, not {record.dataset_fingerprint[:12]}."
        )
    if experiment.split_fingerprint != record.split_fingerprint:
        raise UserError(f"{path} was trained on other folds than {config.protocol.name} gives now.")
    if others:
        write_atomically(run.config_path, OmegaConf.to_yaml(OmegaConf.structured(config)))
    return run, record, experiment


def _check_length(run: RunFolder, record: RunRecord, epochs: int) -> None:
    """What has been trained cannot be taken back, and the config must not say less."""
    done = {unit.name: len(run.read_metrics(unit.name)) for unit in record.units}
    longest = max(done, key=lambda name: done[name])
    if done[longest] > epochs:
        raise UserError(
            f"epochs={epochs}: {longest} of {run.path} has {done[longest]} epochs already; give as "
            "many or more, or leave epochs= out."
        )


def claim(run: RunFolder, record: RunRecord) -> None:
    """Say that this process is computing the run."""
    record.state, record.reason, record.ended = RUNNING, "", None
    record.pid, record.host = os.getpid(), platform.node()
    run.write_record(record)


def read_config(run: RunFolder) -> TrainConfig:
    return restore_config(read_yaml(run.config_path), str(run.config_path))


def default_name(config: TrainConfig) -> str:
    """The choices that tell runs apart."""
    words = [config.dataset.name, *config.propagation.words, config.aggregator.name]
    if config.propagation.uses_g:
        words.append(config.g.name)
    return as_name("-".join([*words, f"k{config.layers}"]).lower())


@cache
def library_versions() -> dict[str, str]:
    """Of what the figures may depend on."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for name in ("numpy", "torch_scatter"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions | {"machine": f"{platform.system()} {platform.machine()}"}


@cache
def git_commit() -> str | None:
    """The commit of the source tree this runs from, where it is one."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None if answer.returncode == 0 else None


def _is_finished(run: RunFolder, unit: Unit, config: TrainConfig) -> bool:
    result = run.read_result(unit.name)
    if result is None or result.state != FINISHED:
        return False
    waited = result.epochs - result.selected_epoch
    return result.epochs >= length_of(config) or waited >= patience_of(config)
