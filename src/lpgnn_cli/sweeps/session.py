"""One start of `lpgnn sweep`: its folder, its record, its launcher, and its closing report."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
from lpgnn_cli.formatting import count, duration
from lpgnn_cli.reporting.text import write_plain
from lpgnn_cli.runfolder import (
    FINISHED,
    RUNNING,
    RunFolder,
    RunRecord,
    make_folder,
    runs_root,
)
from lpgnn_cli.runsummary import HONEST_ACCURACY, SECONDS, is_reported
from lpgnn_cli.signals import interrupting
from lpgnn_cli.sweeps.board import Board
from lpgnn_cli.sweeps.cost import CostModel, total
from lpgnn_cli.sweeps.display import Monitor, show_plan, show_results
from lpgnn_cli.sweeps.engines import engine_overrides
from lpgnn_cli.sweeps.function import STOP_FILE, JobFunction
from lpgnn_cli.sweeps.jobs import asked, find_sweep, read_record, read_table, sweep_folder
from lpgnn_cli.sweeps.nested import NESTED, SELECT, assessing_overrides, choose
from lpgnn_cli.sweeps.objective import AUTO
from lpgnn_cli.sweeps.outcome import write_results
from lpgnn_cli.sweeps.supervisor import Supervisor
from lpgnn_cli.sweeps.workers import SlotSettings, plan_slots
from lpgnn_cli.tracking import LiveTracking
from lpgnn_cli.tracking import start as start_tracking
from lpgnn_cli.tracking.state import read_state
from lpgnn_cli.training.experiment import git_commit
from lpgnn_cli.version import __version__

# How long jobs wait for the sweep to be known to MLflow, where they are to send their own results.
PARENT_SECONDS = 30.0
FOLLOWER = "lpgnn_cli.sweeps.job_mirrors"
# What decides on the outer folds of protocol=nested, beside the seed where they are drawn.
OUTER = ("dataset", "dataset.name", "dataset.path", "protocol.folds", "protocol.splits")
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
    began: float = field(default_factory=time.time)

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
        if base.resume is not None:
            raise UserError(
                "resume= is for lpgnn train: a sweep goes on where the same command is given again."
            )
        if settings.metric != AUTO and not is_reported(settings.metric):
            raise UserError(
                f"sweep.metric={settings.metric}: no run reports that; take auto or a number of "
                f"summary.json, such as {HONEST_ACCURACY}, train/violation_mean or {SECONDS}."
            )
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
            check_sample(settings, name, is_grid(master), outer)
            if settings.detach:
                check_detached(master, outer)
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
            supervisor.planned = session.start_jobs
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

    def start_jobs(self) -> None:
        """Some jobs are known, and none of them has been written down or started yet."""
        earlier = {job.key for job in read_table(self.folder)}
        if earlier.isdisjoint(job.key for job in self.board.jobs):
            # Nothing of an earlier start counts, as after a change of the code that computes.
            self.record.started = self.began
            self.record.version, self.record.git_commit = __version__, git_commit()
            RunFolder(self.folder).write_record(self.record)
        self.monitor.start()

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
        summary = write_results(self.folder, self.record, self.board, self.axes)
        if self.live is not None:
            self.live.run_ended(RunFolder(self.folder), summary)
        show_results(self.board, self.axes, self.console, self.folder)

    def leave(self, jobs: int) -> None:
        """The jobs are in the queue of a cluster, and nobody waits for them here."""
        self.monitor.stop()
        if self.live is not None:
            self.live.run_ended(RunFolder(self.folder), {})
        write_plain(
            self.console,
            f"{count(jobs, 'job')} submitted to Slurm. How far they are: "
            f"lpgnn status {self.record.name}",
        )

    def _start_record(self) -> None:
        run, record = RunFolder(self.folder), self.record
        record.state, record.reason, record.ended = RUNNING, "", None
        record.pid, record.host = os.getpid(), platform.node()
        run.write_record(record)
        # Nobody stays to send the jobs of a sweep that is left alone.
        if self.settings.mirror == "job" or not self.settings.detach:
            self.live = start_tracking(self.tracking, run, follower=FOLLOWER)
        if self.live is not None and self.settings.mirror == "job":
            self.supervisor.function.parent_run_id = await_parent(run)


def await_parent(run: RunFolder) -> str | None:
    """MLflow's id of the sweep, once its follower has it; jobs that go ahead have no parent."""
    deadline = time.monotonic() + PARENT_SECONDS
    while time.monotonic() < deadline:
        state = read_state(run)
        if state is not None and state.parent.run_id:
            return state.parent.run_id
        time.sleep(0.2)
    return None


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
    for key in (*OUTER, *(() if protocol.splits else ("seed",))):
        if key in swept:
            raise UserError(
                f"each value of {key} has outer folds of its own, and protocol=nested chooses one "
                f"combination per outer fold of all of them: give {key} one value."
            )
    return count_folds(protocol, str(base.dataset.name))


def default_name(base: DictConfig, axes: Sequence[str], words: Sequence[str]) -> str:
    """The same question has the same name, so that asking again goes on in the same folder."""
    digest = hashlib.sha256("\n".join(sorted(asked(words))).encode()).hexdigest()[:8]
    dataset = str(OmegaConf.select(base, "dataset.name", default="") or "")
    chosen = [] if "dataset" in axes else [dataset]
    stem = re.sub(r"[^\w.-]+", "-", "-".join([*chosen, *axes]).lower())
    return f"{stem[:60].strip('-')}-{digest}"


def open_record(folder: Path, name: str, words: Sequence[str]) -> RunRecord:
    """That of the earlier start, where there was one: in MLflow it is the same run."""
    record = read_record(RunFolder(folder)) or RunRecord(
        id=uuid.uuid4().hex,
        command="sweep",
        name=name,
        argv=[],
        version=__version__,
        started=time.time(),
        git_commit=git_commit(),
    )
    record.argv = ["sweep", *words]
    return record


def write_config(folder: Path, base: DictConfig, swept: dict[str, Override]) -> None:
    """What all jobs share; an axis has all its values."""
    plain = OmegaConf.to_container(base)
    assert isinstance(plain, dict)
    plain.pop("hydra")
    # A variant names runs after their preset, which only Hydra knows.
    plain["name"] = base.name
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


def check_sample(settings: SweepSettings, name: str, of_grid: bool, outer_folds: int) -> None:
    """Some combinations alone can be trained where all are known."""
    if settings.sample is not None and not of_grid:
        raise UserError(
            "sweep.sample draws from a grid; a search draws values itself, as many as "
            "hydra.sweeper.n_trials says."
        )
    if settings.best_of is None:
        return
    if settings.sample is None:
        raise UserError(
            f"sweep.best_of={settings.best_of}: say by sweep.sample=N how many of its best "
            "combinations are to be trained."
        )
    if find_sweep(settings.best_of).resolve() == sweep_folder(name).resolve():
        raise UserError(f"sweep.best_of={name} is this sweep itself: name another one.")
    if outer_folds:
        raise UserError(
            f"sweep.best_of={settings.best_of} has seen graphs that the outer folds of "
            "protocol=nested are to be tested on: leave one of the two out."
        )


def check_detached(master: DictConfig, outer_folds: int) -> None:
    """Only a cluster goes on without this process, and only with jobs that are all known."""
    if not str(master.hydra.launcher._target_).endswith("SlurmLauncher"):
        raise UserError("sweep.detach=true is for hydra/launcher=slurm: others end with the sweep.")
    if outer_folds or not is_grid(master):
        raise UserError(
            "sweep.detach=true is for grids: a search, and protocol=nested, choose jobs by the "
            "results of others; leave it out and let the sweep run."
        )


def is_grid(master: DictConfig) -> bool:
    """Whether all combinations are known beforehand, rather than searched for."""
    return str(master.hydra.sweeper._target_).endswith("BasicSweeper")


def runs_in_process(launcher: DictConfig) -> bool:
    return str(launcher._target_).endswith("BasicLauncher")
