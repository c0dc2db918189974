"""What the launchers in `hydra_plugins.lpgnn_launcher` have that sweeps use.

Hydra takes launchers from its own namespace alone, and those import this package, never the other
way round; so they are known here by what they can do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from hydra.core.utils import JobReturn
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class Launches(Protocol):
    """Any launcher, also one of others."""

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]: ...


class JobLauncher(Protocol):
    """Keeps what Hydra sets a launcher up with."""

    hydra_context: HydraContext
    task_function: TaskFunction
    config: DictConfig


class HasSlots(Protocol):
    """The settings that say how many jobs run at a time, and where."""

    workers: str
    devices: str | Sequence[str | int] | None
    jobs_per_device: int


@runtime_checkable
class WatchesWorkers(Protocol):
    """Tells of a job whose process ended without a result, and starts none when stopping."""

    died: Callable[[Sequence[str], str], None]
    stopping: Callable[[], bool]


@runtime_checkable
class Submits(Protocol):
    """Can leave jobs to a cluster; the ids that they have there."""

    def submit(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[str]: ...


class WorkersLauncher(JobLauncher, HasSlots, WatchesWorkers, Protocol):
    """`hydra/launcher=workers` and `gpus`."""


class SlurmLauncher(JobLauncher, Protocol):
    """`hydra/launcher=slurm`."""

    parameters: dict[str, Any]
