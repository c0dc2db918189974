"""Launchers and a sweeper that Hydra finds by itself; light, as Hydra imports every plugin.

Hydra takes plugins from the namespace `hydra_plugins` alone. What they do is in `lpgnn_cli.sweeps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

Overrides = Sequence[str]


class SweepLauncher(Launcher):
    """Stands between a sweeper and the launcher that was chosen: the supervisor decides."""

    def __init__(self, chosen: DictConfig) -> None:
        self.chosen = OmegaConf.create(OmegaConf.to_container(chosen))

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        from hydra.core.plugins import Plugins

        from lpgnn_cli.sweeps.supervisor import Supervisor

        # A launcher is handed a task function and nothing else, so the supervisor comes as one.
        assert isinstance(task_function, Supervisor)
        self.supervisor = task_function
        inner_config = config.copy()
        with read_write(inner_config.hydra), open_dict(inner_config.hydra):
            inner_config.hydra.launcher = self.chosen
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context,
            task_function=task_function.function,
            config=inner_config,
        )

    def launch(
        self, job_overrides: Sequence[Overrides], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        return self.supervisor.launch(job_overrides, initial_job_idx, self.launcher)


class JobLauncher(Launcher):
    """Keeps what Hydra sets a launcher up with."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config


class WorkersLauncher(JobLauncher):
    """A process for each job on this machine, with slots for cores or GPUs."""

    def __init__(
        self,
        workers: str | int,
        devices: str | Sequence[str | int] | None,
        jobs_per_device: int,
    ) -> None:
        self.workers = str(workers)
        self.devices = devices
        self.jobs_per_device = jobs_per_device
        # Told of a job whose process ended without a result, as soon as it is known.
        self.died: Callable[[Overrides, str], None] = lambda overrides, reason: None
        self.stopping: Callable[[], bool] = lambda: False

    def launch(
        self, job_overrides: Sequence[Overrides], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        from lpgnn_cli.sweeps.workers import launch

        return launch(self, job_overrides, initial_job_idx)


class SlurmLauncher(JobLauncher):
    """A task of a Slurm job array for each job, through submitit."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = {
            key: OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
            for key, value in parameters.items()
        }

    def launch(
        self, job_overrides: Sequence[Overrides], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        from lpgnn_cli.sweeps.slurm import launch

        return launch(self, job_overrides, initial_job_idx)

    def submit(self, job_overrides: Sequence[Overrides], initial_job_idx: int) -> list[str]:
        from lpgnn_cli.sweeps.slurm import submit

        return [str(job.job_id) for job in submit(self, job_overrides, initial_job_idx)]


class OptunaSweeper(Sweeper):
    """Draws values with Optuna; `lpgnn_cli.sweeps.search` has the search."""

    def __init__(self, params: Mapping[str, Any] | None, **settings: Any) -> None:
        self.params: Mapping[str, Any] = params or {}
        self.settings = SimpleNamespace(**settings)

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        from hydra.core.plugins import Plugins

        self.config = config
        self.task_function = task_function
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        from lpgnn_cli.sweeps.search import search
        from lpgnn_cli.sweeps.supervisor import Supervisor

        assert isinstance(self.task_function, Supervisor)
        assert self.config is not None
        assert self.launcher is not None
        words = [*(f"{key}={value}" for key, value in self.params.items()), *arguments]
        folder, metric = Path(self.config.hydra.sweep.dir), str(self.config.sweep.metric)
        stopping = self.task_function.stopping
        search(self.settings, folder, metric, words, self.launcher.launch, stopping)
