"""Training one unit: epochs, metrics, checkpoints, early stopping, divergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.training import ValidatedConfig
from lpgnn_cli.data import Dataset, FeatureScaler, Split, random_signs, with_signs
from lpgnn_cli.data.part import Part
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import ACCURACY, LOSS, METRICS, TEST, TRAIN, VAL, Metric
from lpgnn_cli.model.network import DataShape
from lpgnn_cli.propagation import Outcome, Propagation, build_propagation
from lpgnn_cli.runfolder import (
    BEST_ON_TEST,
    DIVERGED,
    FINISHED,
    INTERRUPTED,
    LAST,
    MODEL,
    SELECTED,
    MetricsWriter,
    Rule,
    RunFolder,
    Unit,
    UnitResult,
)
from lpgnn_cli.training.checkpoint import load_checkpoint, reading, save_checkpoint
from lpgnn_cli.training.closing import close_unit, scored_part
from lpgnn_cli.training.counting import TransitionCounter
from lpgnn_cli.training.device import autocast, computing_clock
from lpgnn_cli.training.epoch import train_epoch
from lpgnn_cli.training.evaluation import Evaluation, to_floats
from lpgnn_cli.training.history import FILE as HISTORY
from lpgnn_cli.training.history import WeightHistory
from lpgnn_cli.training.parts import fit_scaler, items_of, make_parts
from lpgnn_cli.training.row_files import RowFiles
from lpgnn_cli.training.schedule import learning_rate_scale, patience_of, selecting
from lpgnn_cli.training.snapshots import StateSnapshots
from lpgnn_cli.training.suited import length_of

HALVINGS = 10


@dataclass(frozen=True)
class UnitTask:
    """All that a process needs to train one unit."""

    unit: Unit
    config: TrainConfig
    dataset: Dataset
    split: Split
    run: Path
    device: str
    threads: int
    dataset_fingerprint: str
    split_fingerprint: str
    # Bytes that the weights of all epochs may take.
    history_limit: int = 0


class Divergence(ArithmeticError):
    """The Lagrangian is no longer finite."""


@dataclass
class Progress:
    """Where a unit is: what a checkpoint must bring back beside the propagation."""

    epoch: int = 0
    # On the validation part.
    best_epoch: int = 0
    best_value: float = -math.inf
    best_on_test: float = -math.inf
    lr_scale: float = 1.0
    halvings: int = 0
    seconds: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)


class UnitFit:
    """One unit in training."""

    def __init__(self, task: UnitTask) -> None:
        self.task = task
        self.config = task.config
        self.epochs = length_of(task.config)
        self.run = RunFolder(task.run)
        self.folder = self.run.make_unit(task.unit.name)
        self.device = torch.device(task.device)
        torch.set_num_threads(task.threads)
        self.clock = computing_clock(self.device, task.threads)
        torch.backends.cuda.matmul.allow_tf32 = self.config.tf32
        self.scaler: FeatureScaler = fit_scaler(self.config, task.dataset, task.split)
        self.parts = make_parts(self.config, task.dataset, task.split, self.scaler, self.device)
        self.rows = RowFiles(self.folder)
        self.flips = torch.Generator()
        self.order = torch.Generator()
        self._setting = self._describe_setting()
        self._begin()

    def _begin(self) -> None:
        """The last checkpoint, or a fresh start where there is none."""
        torch.manual_seed(self.task.unit.seed)
        self.flips.manual_seed(self.task.unit.seed)
        self.order.manual_seed(self.task.unit.seed)
        batch = self.parts["train"].batch
        self.signs: Tensor | None = None
        if self.task.dataset.positional and self.config.dataset.sign_flips:
            self.signs = random_signs(batch, self.task.dataset.positional, self.flips)
        self.propagation: Propagation = build_propagation(
            self.config,
            DataShape.of(batch),
            {name: part.batch for name, part in self.parts.items()},
            like=batch.features,
        )
        self.counter = TransitionCounter(self.propagation.network)
        self.snapshots = StateSnapshots(self.config, self.propagation, batch)
        self.progress = Progress()
        # Checkpoints of epochs before this one, by file.
        self.kept: dict[str, dict[str, Any]] = {}
        last = self.folder / LAST
        if not last.is_file():
            return
        with reading(last):
            content = self._own(last)
            self._load(content)
        for name in (SELECTED, BEST_ON_TEST):
            if (self.folder / name).is_file():
                self.kept[name] = self._own(self.folder / name)
        self.rows.saved([content, *self.kept.values()])
        if self.validated and self.progress.best_epoch and SELECTED not in self.kept:
            raise UserError(
                f"{self.folder} has no {SELECTED}, though its validation part selected an epoch: "
                "version 0.1 called it best.pt; rename it and resume again."
            )

    def _own(self, path: Path) -> dict[str, Any]:
        """A checkpoint of this unit: the same fold and seed of the same data."""
        content = load_checkpoint(path)
        for what in ("unit", "dataset_fingerprint", "split_fingerprint"):
            if content.get(what) != self._setting[what]:
                raise UserError(
                    f"{path} is the checkpoint of something else: its {what.replace('_', ' ')} is "
                    f"{content.get(what)}, not {self._setting[what]}."
                )
        return content

    @property
    def metric(self) -> Metric:
        """What the unit is judged by."""
        return METRICS[self.parts["train"].judging.metric]

    @property
    def validated(self) -> ValidatedConfig | None:
        """The rule by which a validation part selects an epoch, where one does."""
        return selecting(self.config)

    def fit(
        self, report: Callable[[int, dict[str, float]], None], stop: Callable[[], bool]
    ) -> UnitResult:
        """Train to the end, or until `stop` says so; every epoch is written, then reported."""
        writer, history = self._open_files()
        state, reason = FINISHED, ""
        try:
            while self.progress.epoch < self.epochs and not self._out_of_patience():
                if stop():
                    state, reason = INTERRUPTED, "stopped by the user"
                    break
                try:
                    metrics = self._epoch(self.progress.epoch + 1)
                except Divergence as divergence:
                    if not self._halve_lr():
                        state, reason = DIVERGED, str(divergence)
                        break
                    writer.close()
                    history.close()
                    writer, history = self._open_files()
                    continue
                writer.write(self.progress.epoch, metrics)
                history.write(self.propagation.network)
                report(self.progress.epoch, metrics)
                if self.progress.epoch % self.config.checkpoint_every == 0:
                    self._save()
        finally:
            writer.close()
            history.close()
        if state == DIVERGED:
            self._save_kept()
            return self._result(self.progress, state, reason)
        self._save()
        trained = self.progress
        if state == FINISHED:
            self.snapshots.write(self.folder)
            if self.validated is not None:
                self._load(self.kept[SELECTED])
            self._save_model()
        return self._result(trained, state, reason)

    def _open_files(self) -> tuple[MetricsWriter, WeightHistory]:
        """What grows with every epoch, as it was when the epoch it goes on from had ended."""
        done = self.progress.epoch
        history = WeightHistory.open(
            self.folder / HISTORY,
            self.propagation.network,
            done=done,
            epochs=self.epochs,
            # Without a path there is nothing to be scored again.
            limit=0 if self.propagation.path_free else self.task.history_limit,
        )
        return MetricsWriter(self.folder / "metrics.csv", keep_epochs=done), history

    def _epoch(self, epoch: int) -> dict[str, float]:
        started = self.clock()
        self.rows.moved_on()
        schedule = learning_rate_scale(self.config.optim, epoch, self.epochs)
        self.propagation.scale_lr(schedule * self.progress.lr_scale)
        evaluated = self._is_evaluated(epoch)
        with autocast(self.config, self.device):
            part = self._renewed()
            optim = self.config.optim
            with self.counter.counting(part.batch.num_nodes) as counted:
                trained = train_epoch(
                    self.propagation,
                    epoch,
                    part,
                    optim.batch_graphs,
                    self.order,
                    optim.batch_nodes,
                )
            metrics = self.progress.metrics | to_floats(trained)
            metrics |= {f"{TRAIN}/{name}": value for name, value in counted.metrics().items()}
            if evaluated:
                self.propagation.take_statistics(part.batch)
            for name, part in self.parts.items():
                if name != "train":
                    self.propagation.follow(name, part.batch)
            if evaluated:
                metrics |= self._evaluate()
        if not all(math.isfinite(value) for value in metrics.values()):
            raise Divergence(
                f"the Lagrangian is not finite in epoch {epoch}: "
                f"{self.propagation.describe_divergence()}; try a smaller lr.theta or lr.state."
            )
        progress = self.progress
        progress.epoch = epoch
        progress.metrics = metrics
        progress.seconds += self.clock() - started
        if evaluated:
            self._keep(epoch, metrics)
        self.snapshots.take(epoch)
        return metrics

    def _evaluate(self) -> dict[str, float]:
        """The parts that are not trained on; those that share a graph share one pass over it."""
        outcomes: dict[int, Outcome] = {}
        metrics: dict[str, float] = {}
        for name, part in self.parts.items():
            if name == "train":
                continue
            graphs = id(part.batch)
            if graphs not in outcomes:
                outcomes[graphs] = self.propagation.evaluate(name, part.batch)
            metrics |= Evaluation(part, outcomes[graphs]).metrics(name)
        return metrics

    def _keep(self, epoch: int, metrics: dict[str, float]) -> None:
        """Keep what a checkpoint holds now, if no epoch so far was better."""
        progress = self.progress
        if self.validated is not None:
            if self.validated.select == "loss":
                value = -metrics[LOSS.on(VAL)]
                better = value > progress.best_value
            else:
                by_accuracy = self.validated.select == ACCURACY.name
                value = _worth(ACCURACY if by_accuracy else self.metric, metrics, VAL)
                # Few graphs validate, so ties are common; the longer trained network wins them.
                better = value >= progress.best_value
            if better:
                progress.best_epoch, progress.best_value = epoch, value
                self.kept[SELECTED] = self._content()
        worth = _worth(self.metric, metrics, TEST)
        if self.config.keep_best_on_test and worth > progress.best_on_test:
            progress.best_on_test = worth
            self.kept[BEST_ON_TEST] = self._content()
        self.rows.delete_unnamed(self.kept.values())

    def _is_evaluated(self, epoch: int) -> bool:
        every = self.config.evaluate_every
        return epoch == 1 or epoch % every == 0 or epoch == self.epochs

    def _renewed(self) -> Part:
        """The training part, with graphs put back to zero whose turn it is.

        They get new signs of their eigenvectors, too, where those are drawn: another input has
        another fixed point, and states that persist would run after it.
        """
        part = self.parts["train"]
        anew = self.propagation.renew(part.batch)
        if self.signs is None:
            return part
        self.signs = torch.where(
            anew[:, None], random_signs(part.batch, self.signs.shape[1], self.flips), self.signs
        )
        return replace(part, batch=with_signs(part.batch, self.signs))

    def _out_of_patience(self) -> bool:
        waited = self.progress.epoch - self.progress.best_epoch
        return waited >= patience_of(self.config)

    def _halve_lr(self) -> bool:
        """Back to the last checkpoint with half the learning rates; False if that is not wished."""
        progress = self.progress
        if self.config.on_divergence != "halve_lr" or progress.halvings >= HALVINGS:
            return False
        scale, halvings = progress.lr_scale / 2, progress.halvings + 1
        self._begin()
        self.progress.lr_scale, self.progress.halvings = scale, halvings
        return True

    def _describe_setting(self) -> dict[str, Any]:
        """What a checkpoint holds of the unit itself: the same in every epoch."""
        task = self.task
        units = self.parts["train"].judging.units
        split = {"train": task.split.train, "val": task.split.val, "test": task.split.test}
        return {
            "config": asdict(self.config),
            "unit": asdict(task.unit),
            "shape": asdict(DataShape.of(self.parts["train"].batch)),
            "dataset_fingerprint": task.dataset_fingerprint,
            "split_fingerprint": task.split_fingerprint,
            "split": {name: indices for name, indices in split.items() if indices is not None},
            "scaler": self.scaler.to_dict(),
            "vocabulary": task.dataset.vocabulary.to_dict(),
            "units": None if units is None else units.to_dict(),
        }

    def _content(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return self._setting | {
            "progress": asdict(self.progress),
            "propagation": self.rows.set_aside(
                self.propagation.state_dict(), self.propagation.is_mapped
            ),
            "snapshots": self.snapshots.state_dict(),
            "signs": self.signs,
            "rng": {
                "torch": torch.get_rng_state(),
                "flips": self.flips.get_state(),
                "order": self.order.get_state(),
                "cuda": torch.cuda.get_rng_state_all() if self.device.type == "cuda" else [],
            },
        }

    def _save(self) -> None:
        # In this order: a unit killed in between goes on from the old last.pt and finds the same
        # best epochs again, while a last.pt ahead of them would never look for them.
        self._save_kept()
        last = self._content()
        save_checkpoint(self.folder / LAST, last)
        self.rows.saved([last, *self.kept.values()])

    def _save_kept(self) -> None:
        for name, content in self.kept.items():
            save_checkpoint(self.folder / name, content)

    def _save_model(self) -> None:
        """The network without the states of training: small, however many graphs there were."""
        network = self.rows.set_aside(
            self.propagation.network.state_dict(), self.propagation.is_mapped
        )
        content = {"progress": asdict(self.progress), "propagation": {"network": network}}
        save_checkpoint(self.folder / MODEL, self._setting | content)

    def _load(self, content: dict[str, Any]) -> None:
        self.propagation.load_state_dict(self.rows.brought_back(content["propagation"]))
        self.progress = Progress(**content["progress"])
        self.snapshots.load_state_dict(content["snapshots"])
        self.signs = None if self.signs is None else content["signs"].to(self.signs)
        torch.set_rng_state(content["rng"]["torch"])
        self.flips.set_state(content["rng"]["flips"])
        self.order.set_state(content["rng"]["order"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state_all(content["rng"]["cuda"])

    def _result(self, trained: Progress, state: str, reason: str) -> UnitResult:
        rule = Rule.by_validation(self.validated.select) if self.validated else Rule.LAST_EPOCH
        result = UnitResult(
            unit=self.task.unit.name,
            state=state,
            epochs=trained.epoch,
            selected_epoch=self.progress.epoch,
            rule=rule,
            metrics=self.progress.metrics,
            seconds=trained.seconds,
            reason=reason,
        )
        if state == FINISHED:
            unit, split = self.task.unit, self.task.split
            scored = scored_part(self.parts)
            closing = close_unit(
                self.propagation,
                self.parts,
                self.config.inference,
                self.folder,
                # For a figure, and alike in all units.
                far=self.config.figures and unit.fold == 0 and unit.seed == self.config.seed,
                items=items_of(self.config, self.task.dataset, split, scored),
            )
            result.from_zero = closing.from_zero
            result.persistent = closing.persistent
            result.inference = closing.inference
        self.run.write_result(result)
        return result


def _worth(metric: Metric, metrics: dict[str, float], part: str) -> float:
    """The larger, the better; the least of all where the part has no such metric."""
    value = metrics.get(metric.on(part))
    if value is None:
        return -math.inf
    return value if metric.larger_is_better else -value
