"""`hydra/launcher=slurm`: a batch as one job array, each job collected for itself."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn

from lpgnn_cli.errors import UserError
from lpgnn_cli.sweeps.launchers import SlurmLauncher
from lpgnn_cli.sweeps.workers import WorkerTask, failed, tasks

POLL_SECONDS = 2.0
# A job that has left the queue may take this long until its result is seen on a shared folder.
LATE_SECONDS = 30.0
# Parameters that submitit knows for every kind of cluster; the others are Slurm's.
COMMON = {"timeout_min", "cpus_per_task", "tasks_per_node", "mem_gb", "nodes", "name"}


def launch(
    launcher: SlurmLauncher, job_overrides: Sequence[Sequence[str]], first: int
) -> list[JobReturn]:
    jobs = submit(launcher, job_overrides, first)
    try:
        return collect(jobs, job_overrides)
    except KeyboardInterrupt:
        # Slurm sends SIGTERM: the jobs write their checkpoints.
        for job in jobs:
            job.cancel()
        raise


def submit(
    launcher: SlurmLauncher, job_overrides: Sequence[Sequence[str]], first: int
) -> list[Any]:
    import submitit

    parameters = {key: value for key, value in launcher.parameters.items() if value is not None}
    folder = str(parameters.pop("submitit_folder"))
    timeouts = parameters.pop("max_num_timeout")
    try:
        executor = submitit.AutoExecutor(
            folder=folder, cluster="slurm", slurm_max_num_timeout=timeouts
        )
    except RuntimeError as error:
        raise UserError(f"hydra/launcher=slurm: there is no Slurm here ({error}).") from error
    executor.update_parameters(
        **{key if key in COMMON else f"slurm_{key}": value for key, value in parameters.items()}
    )
    jobs: list[Any] = executor.map_array(SlurmTask(), list(tasks(launcher, job_overrides, first)))
    return jobs


class SlurmTask:
    """What submitit runs; a time limit queues the same task again, which goes on."""

    def __call__(self, task: WorkerTask) -> JobReturn:
        return task()

    def checkpoint(self, task: WorkerTask) -> Any:
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, task)


def collect(jobs: Sequence[Any], job_overrides: Sequence[Sequence[str]]) -> list[JobReturn]:
    """Results in the order of the jobs; one that is lost becomes a failure."""
    returns: dict[int, JobReturn] = {}
    absent_since: dict[int, float] = {}
    while True:
        queued = queue([job.job_id for job in jobs])
        for position, job in enumerate(jobs):
            if position in returns:
                continue
            if job.paths.result_pickle.is_file():
                returns[position] = _result(job, job_overrides[position])
            elif queued is not None and job.job_id not in queued:
                since = absent_since.setdefault(position, time.monotonic())
                if time.monotonic() - since > LATE_SECONDS:
                    error = RuntimeError(f"Slurm job {job.job_id} ended without a result")
                    returns[position] = failed(job_overrides[position], error)
            else:
                absent_since.pop(position, None)
        if len(returns) == len(jobs):
            return [returns[position] for position in range(len(jobs))]
        time.sleep(POLL_SECONDS)


def _result(job: Any, overrides: Sequence[str]) -> JobReturn:
    try:
        result: JobReturn = job.results()[0]
    except Exception as error:  # whatever ended it: its folder has what it wrote
        return failed(overrides, error)
    return result


def queue(ids: Sequence[str]) -> set[str] | None:
    """Those that wait or run; None where the queue cannot be asked at the moment.

    The accounting database, which submitit asks, is not there on every cluster.
    """
    arrays = ",".join(sorted({job_id.split("_")[0] for job_id in ids}))
    asked = subprocess.run(
        ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={arrays}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        # An array whose last job ended some minutes ago is not known any more.
        return set() if "Invalid job id" in asked.stderr else None
    return set(asked.stdout.split())
