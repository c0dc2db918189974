"""`hydra/launcher=workers` and `gpus`: the jobs of a batch in worker processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.utils import JobReturn, JobRuntime, JobStatus, run_job
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from lpgnn_cli.config.compose import prepare_hydra
from lpgnn_cli.errors import UserError
from lpgnn_cli.processes import cores
from lpgnn_cli.sweeps.launchers import HasSlots, JobLauncher, WorkersLauncher
from lpgnn_cli.sweeps.pool import VISIBLE, Died, run_in_pool

AUTO = "auto"


@dataclass(frozen=True)
class WorkerTask:
    """All that another process, here or elsewhere, needs to run one job."""

    hydra_context: HydraContext
    function: TaskFunction
    config: DictConfig

    def __call__(self) -> JobReturn:
        prepare_hydra()
        JobRuntime.instance().set("name", self.config.hydra.job.name)
        return run_job(
            hydra_context=self.hydra_context,
            task_function=self.function,
            config=self.config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )


def launch(
    launcher: WorkersLauncher, job_overrides: Sequence[Sequence[str]], first: int
) -> list[JobReturn]:
    """Every job of the batch; what did not start, as the sweep stops, returns nothing."""
    returns = [not_run(overrides) for overrides in job_overrides]

    def done(position: int, result: Any) -> None:
        if isinstance(result, Died):
            launcher.died(job_overrides[position], result.reason)
            result = failed(job_overrides[position], RuntimeError(result.reason))
        returns[position] = result

    run_in_pool(
        tasks(launcher, job_overrides, first), plan_slots(launcher), done, launcher.stopping
    )
    return returns


def tasks(
    launcher: JobLauncher, job_overrides: Sequence[Sequence[str]], first: int
) -> Iterator[WorkerTask]:
    """The jobs, each composed when it is asked for."""
    context = launcher.hydra_context
    for number, overrides in enumerate(job_overrides, first):
        config = context.config_loader.load_sweep_config(launcher.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = str(number), number
        yield WorkerTask(context, launcher.task_function, config)


def not_run(overrides: Sequence[str]) -> JobReturn:
    return JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED)


def failed(overrides: Sequence[str], error: Exception) -> JobReturn:
    answer = JobReturn(overrides=list(overrides), status=JobStatus.FAILED)
    answer.return_value = error
    return answer


@dataclass
class SlotSettings:
    """The slots of a launcher that is only configured yet."""

    workers: str
    devices: str | Sequence[str | int] | None
    jobs_per_device: int


def plan_slots(wanted: HasSlots) -> list[str | None]:
    """One entry for each job that runs at a time: its GPU, or None."""
    if wanted.devices is None:
        return [None] * count_workers(wanted.workers, cores())
    devices = find_devices() if wanted.devices == AUTO else [str(d) for d in wanted.devices]
    if not devices:
        raise UserError("hydra/launcher=gpus finds no GPU here: use hydra/launcher=workers.")
    # Round by round, so that the first jobs spread over all devices.
    slots: list[str | None] = [d for _ in range(wanted.jobs_per_device) for d in devices]
    return slots[: count_workers(wanted.workers, len(slots))]


def count_workers(wanted: str, available: int) -> int:
    if wanted == AUTO:
        return available
    if not wanted.isdecimal() or int(wanted) < 1:
        raise UserError(
            f"hydra.launcher.workers must be auto or a number of at least 1, not {wanted}."
        )
    return int(wanted)


def find_devices() -> list[str]:
    """What CUDA_VISIBLE_DEVICES leaves of the GPUs that the driver shows."""
    visible = os.environ.get(VISIBLE)
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]
