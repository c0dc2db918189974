"""One start of `lpgnn sweep`: its folder, its record, its launcher, and its closing report."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import platform
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.core.plugins import Plugins
from hydra.core.utils import JobRuntime
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from rich.console import Console

from lpgnn_cli import locks
from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.config.compose import load, to_typed, without_hydra
from lpgnn_cli.config.compose_jobs import SweepLoader
from lpgnn_cli.config.explain import explain
from lpgnn_cli.config.hydra_internals import ConfigLoader, make_context
from lpgnn_cli.config.sweep import SweepSettings
from lpgnn_cli.config.tracking import TrackingConfig
from lpgnn_cli.config.training import NestedConfig
from lpgnn_cli.credentials import redact
from lpgnn_cli.data.nested_splits import count_folds
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import duration
from lpgnn_cli.metrics import mean_of, std_of
from lpgnn_cli.names import checked_name
from lpgnn_cli.runfolder import (
    DIVERGED,
    FAILED,
    FINISHED,
    HONEST,
    INTERRUPTED,
    OPTIMISTIC,
    RUNNING,
    RunFolder,
    RunRecord,
    make_folder,
    runs_root,
)
from lpgnn_cli.signals import interrupting
from lpgnn_cli.sweeps.board import Board
from lpgnn_cli.sweeps.cost import CostModel, total
from lpgnn_cli.sweeps.display import Monitor, show_plan, show_results
from lpgnn_cli.sweeps.engines import engine_overrides
from lpgnn_cli.sweeps.figures import draw_sweep
from lpgnn_cli.sweeps.function import STOP_FILE, JobFunction
from lpgnn_cli.sweeps.jobs import read_record
from lpgnn_cli.sweeps.leaderboard import command_line, write_leaderboard
from lpgnn_cli.sweeps.nested import NESTED, SELECT, assessing_overrides, choose, write_nested
from lpgnn_cli.sweeps.nested import summary_of as nested_summary
from lpgnn_cli.sweeps.supervisor import Supervisor
from lpgnn_cli.sweeps.workers import SlotSettings, plan_slots
from lpgnn_cli.tracking import LiveTracking
from lpgnn_cli.tracking import start as start_tracking
from lpgnn_cli.tracking.state import read_state
from lpgnn_cli.training.experiment import git_commit
from lpgnn_cli.version import __version__

# Overrides that say how a sweep runs, not what it asks.
MANNER = ("sweep.", "hydra/launcher", "hydra.launcher", "tracking", "quiet", "figures")
# How long jobs wait for the sweep to be known to MLflow, where they are to send their own results.
PARENT_SECONDS = 30.0
FOLLOWER = "lpgnn_cli.sweeps.job_mirrors"
SWEEP_LAUNCHER = "hydra_plugins.lpgnn_launcher.SweepLauncher"


@dataclass
class Session:
    """A sweep that is going on."""

    folder: Path
    settings: SweepSettings
    axes: list[str]
    supervisor: Supervisor
    board: Board
    monitor: Monitor
    record: RunRecord
    tracking: TrackingConfig
    console: Console
    live: LiveTracking | None = None

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        loader: ConfigLoader,
        config_name: str,
        overrides: Sequence[str],
        console: Console,
    ) -> Iterator[Session]:
        """Compose what all jobs share, and take possession of the sweep's folder."""
        words = list(overrides)
        base = load(loader, config_name, words, multirun=True)
        settings = OmegaConf.to_object(base.sweep)
        assert isinstance(settings, SweepSettings)
        swept = swept_overrides(loader, base)
        axes = list(swept)
        outer = plan_nested(base, swept, words)
        name_words = list(words)
        if outer:
            words.append(SELECT)
        name = settings.name or default_name(base, axes, name_words)
        folder = sweep_folder(name)
        make_folder(folder)
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locks.held(RunFolder(folder).lock_path))
            except locks.Busy:
                raise UserError(f"the sweep {name} is running already, in {folder}.") from None
            stack.enter_context(interrupting())
            (folder / STOP_FILE).unlink(missing_ok=True)
            quoted = QuotedString(str(folder), Quote.single).with_quotes()
            where = [f"hydra.sweep.dir={quoted}", "hydra.sweep.subdir=."]
            own = [*where, *engine_overrides(base, words)]
            master = load(loader, config_name, [*words, *own], multirun=True)
            check_slots(master.hydra.launcher)
            function = JobFunction(
                sweep=folder,
                token=uuid.uuid4().hex,
                metric=settings.metric,
                in_process=os.getpid() if runs_in_process(master.hydra.launcher) else 0,
                fail_fast=settings.fail_fast,
                retries=settings.retries,
                mirrors_itself=settings.mirror == "job",
            )
            board = Board(settings.metric)
            board.outer_folds = outer
            monitor = Monitor(board, axes, console)
            sweep_loader = SweepLoader(loader)
            supervisor = Supervisor(
                folder=folder,
                settings=settings,
                axes=axes,
                loader=sweep_loader,
                master=master,
                function=function,
                board=board,
                planned=lambda: None if settings.dry_run else monitor.start(),
            )
            record = open_record(folder, name, name_words)
            tracking_config = OmegaConf.to_object(base.tracking)
            assert isinstance(tracking_config, TrackingConfig)
            write_config(folder, base, swept)
            session = cls(
                folder=folder,
                settings=settings,
                axes=axes,
                supervisor=supervisor,
                board=board,
                monitor=monitor,
                record=record,
                tracking=tracking_config,
                console=console,
            )
            try:
                yield session
            finally:
                monitor.stop()

    def run(self) -> None:
        """Let Hydra's sweeper ask for jobs until it has enough."""
        if not self.settings.dry_run:
            self._start_record()
        master, loader = self.supervisor.master, self.supervisor.loader
        with open_dict(master.hydra):
            master.hydra.launcher = {
                "_target_": SWEEP_LAUNCHER,
                "_recursive_": False,
                "chosen": master.hydra.launcher,
            }
        HydraConfig.instance().set_config(master)
        JobRuntime.instance().set("name", master.hydra.job.name)
        context = make_context(loader, master)
        words = OmegaConf.to_container(master.hydra.overrides.task)
        assert isinstance(words, list)
        try:
            sweeper = Plugins.instance().instantiate_sweeper(
                config=master, hydra_context=context, task_function=self.supervisor
            )
            sweeper.sweep(arguments=words)
            if self.board.outer_folds and not self.supervisor.stopping():
                self.supervisor.assess(choose(self.board))
        except HydraException as error:
            raise UserError(explain(error)) from error
        except ValueError as error:
            # A search of which no trial succeeded has no best one; the report says why.
            if isinstance(error, UserError) or self.board.of_state(FINISHED):
                raise
        finally:
            HydraConfig.instance().cfg = None

    def show_plan(self) -> None:
        """The table of jobs and what they will cost, as far as earlier runs tell."""
        model = CostModel(runs_root())
        costs: list[float | None] = []
        for view in self.board.views.values():
            composed = self.supervisor.loader.load_sweep_config(
                self.supervisor.master, list(view.job.overrides)
            )
            costs.append(0.0 if view.found else model.seconds(to_typed(without_hydra(composed))))
        known, unknown = total(costs)
        words = ["" if c == 0.0 else "unknown" if c is None else duration(c) for c in costs]
        to_run = sum(not view.found for view in self.board.views.values())
        sentence = f"{to_run} of {len(costs)} jobs to run"
        if to_run > unknown:
            sentence += f", about {duration(known)} of computing on one core each"
        if unknown:
            sentence += f"; {unknown} unknown, as no run like them has been here"
        if self.board.outer_folds:
            sentence += f". {self._plan_of_assessments(model)}"
        show_plan(self.board, self.console, words, f"{sentence}. Nothing was started.")

    def _plan_of_assessments(self, model: CostModel) -> str:
        """What the outer folds will take once they have chosen, as the mean over all choices."""
        costs = []
        for view in self.board.candidates():
            words = assessing_overrides(view.job, fold=0)
            composed = self.supervisor.loader.load_sweep_config(self.supervisor.master, words)
            costs.append(model.seconds(to_typed(without_hydra(composed))))
        folds = self.board.outer_folds
        sentence = f"Then the choices of {folds} outer folds are trained again"
        known = [cost for cost in costs if cost is not None]
        return f"{sentence}, about {duration(folds * fmean(known))}" if known else sentence

    def close(self) -> None:
        """Whatever happened: the leaderboard, the figures, the record, and the last word."""
        self.monitor.stop()
        self.board.refresh()
        write_leaderboard(self.board, self.axes, self.folder, self.record.name)
        draw_sweep(self.board, self.axes, self.folder / "figures", self.record.name)
        if self.board.outer_folds:
            write_nested(choose(self.board), self.board.judge(), self.axes, self.folder)
        self._end_record()
        show_results(self.board, self.axes, self.console, self.folder)

    def _start_record(self) -> None:
        run, record = RunFolder(self.folder), self.record
        record.state, record.reason, record.ended = RUNNING, "", None
        record.pid, record.host = os.getpid(), platform.node()
        run.write_record(record)
        self.live = start_tracking(self.tracking, run, follower=FOLLOWER)
        if self.live is not None and self.settings.mirror == "job":
            self.supervisor.function.parent_run_id = await_parent(run)

    def _end_record(self) -> None:
        run, record, board = RunFolder(self.folder), self.record, self.board
        bad = board.of_state(FAILED, DIVERGED)
        missing = len(board.views) - len(bad) - len(board.of_state(FINISHED))
        record.state = FAILED if bad else INTERRUPTED if missing else FINISHED
        record.reason = f"{len(bad)} of {len(board.views)} jobs failed" if bad else ""
        record.ended = time.time()
        if board.outer_folds and (best := board.best()):
            of_job = best.job.run.read_record()
            record.dataset_fingerprint = of_job.dataset_fingerprint
            record.split_fingerprint = of_job.split_fingerprint
        summary = summary_of(board)
        run.write_summary(summary)
        run.write_record(record)
        if self.live is not None:
            self.live.run_ended(run, summary)


def await_parent(run: RunFolder) -> str | None:
    """MLflow's id of the sweep, once its follower has it; jobs that go ahead have no parent."""
    deadline = time.monotonic() + PARENT_SECONDS
    while time.monotonic() < deadline:
        state = read_state(run)
        if state is not None and state.parent.run_id:
            return state.parent.run_id
        time.sleep(0.2)
    return None


def summary_of(board: Board) -> dict[str, Any]:
    """summary.json of the sweep: how many jobs, and the best one."""
    best = board.best()
    summary: dict[str, Any] = {
        "jobs": len(board.views),
        "jobs_finished": len(board.of_state(FINISHED)),
        "jobs_failed": len(board.of_state(FAILED, DIVERGED)),
        "seconds": sum(v.summary.seconds for v in board.views.values()),
    }
    if best is not None:
        judge = best.summary.metric.name
        honest, optimistic = f"{HONEST}/{judge}", f"{OPTIMISTIC}/{judge}"
        # What outer folds choose by is no figure to report.
        names = () if board.outer_folds else (mean_of(honest), std_of(honest), mean_of(optimistic))
        summary |= {name: best.summary.value(name) for name in names}
        summary |= {"best/job": best.job.number, "best/command": command_line(best.job)}
        summary["best/figure"] = board.value(best)
    if board.outer_folds:
        summary |= nested_summary(choose(board), board.judge())
    return {k: v for k, v in summary.items() if not (isinstance(v, float) and math.isnan(v))}


def swept_overrides(loader: ConfigLoader, base: DictConfig) -> dict[str, Override]:
    """The axes of the sweep, those of a preset included, with what is swept over."""
    params = base.hydra.sweeper.get("params") or {}
    words = [f"{key}={value}" for key, value in params.items()]
    words += list(base.hydra.overrides.task)
    parsed = OverridesParser.create(config_loader=loader).parse_overrides(words)
    last = {override.key_or_group: override for override in parsed}
    swept = {key: override for key, override in last.items() if override.is_sweep_override()}
    for key in swept:
        if key.startswith("sweep.") or key in ("name", "resume"):
            raise UserError(f"{key} is not a setting to sweep over: give it one value.")
    return swept


def plan_nested(base: DictConfig, swept: dict[str, Override], words: Sequence[str]) -> int:
    """The number of outer folds of `protocol=nested`, 0 under other protocols."""
    if "protocol" in swept and NESTED in (swept["protocol"].input_line or ""):
        raise UserError("protocol=nested is the protocol of a whole sweep: give it alone.")
    if OmegaConf.select(base, "protocol.name") != NESTED:
        return 0
    for word in words:
        key = word.lstrip("+").partition("=")[0]
        if key in ("protocol.stage", "protocol.fold"):
            raise UserError(f"{key} is set by the sweep itself: leave it out.")
    protocol = OmegaConf.to_object(base.protocol)
    assert isinstance(protocol, NestedConfig)
    return count_folds(protocol, str(base.dataset.name))


def default_name(base: DictConfig, axes: Sequence[str], words: Sequence[str]) -> str:
    """The same question has the same name, so that asking again goes on in the same folder."""
    asked = sorted(word for word in words if not word.lstrip("+~").startswith(MANNER))
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()[:8]
    dataset = str(OmegaConf.select(base, "dataset.name", default="") or "")
    chosen = [] if "dataset" in axes else [dataset]
    stem = re.sub(r"[^\w.-]+", "-", "-".join([*chosen, *axes]).lower())
    return f"{stem[:60].strip('-')}-{digest}"


def sweep_folder(name: str) -> Path:
    if name == "jobs":
        raise UserError("sweep.name=jobs cannot name a folder: the jobs of all sweeps are there.")
    return runs_root() / "sweep" / checked_name("sweep.name", name)


def open_record(folder: Path, name: str, words: Sequence[str]) -> RunRecord:
    """That of the earlier start, where there was one: in MLflow it is the same run."""
    return read_record(RunFolder(folder)) or RunRecord(
        id=uuid.uuid4().hex,
        command="sweep",
        name=name,
        argv=["sweep", *words],
        version=__version__,
        started=time.time(),
        git_commit=git_commit(),
    )


def write_config(folder: Path, base: DictConfig, swept: dict[str, Override]) -> None:
    """What all jobs share; an axis has all its values."""
    plain = OmegaConf.to_container(base)
    assert isinstance(plain, dict)
    plain.pop("hydra")
    for key, override in swept.items():
        *path, leaf = key.replace("/", ".").split(".")
        node: Any = plain
        for step in path:
            node = node.setdefault(step, {})
        if isinstance(node.get(leaf), dict):  # a group, which has a name
            node, leaf = node[leaf], "name"
        node[leaf] = (override.input_line or "").partition("=")[2]
    write_atomically(folder / "config.yaml", redact(OmegaConf.to_yaml(plain)))


def check_slots(launcher: DictConfig) -> None:
    """What the launcher would refuse is told before any work."""
    if str(launcher._target_).endswith("WorkersLauncher"):
        workers, jobs = str(launcher.workers), int(launcher.jobs_per_device)
        plan_slots(SlotSettings(workers, launcher.devices, jobs))


def runs_in_process(launcher: DictConfig) -> bool:
    return str(launcher._target_).endswith("BasicLauncher")
