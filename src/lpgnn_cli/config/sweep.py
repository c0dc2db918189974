"""Schema of the `sweep` node: how the jobs of a sweep are treated."""

from __future__ import annotations

from dataclasses import dataclass

from lpgnn_cli.config.fields import setting


@dataclass
class SweepSettings:
    """What `lpgnn sweep` does with its jobs; none of it changes what a job computes."""

    name: str | None = setting()
    metric: str = setting()
    sample: int | None = setting(low=1)
    best_of: str | None = setting()
    dry_run: bool = setting()
    fail_fast: bool = setting()
    retries: int = setting(low=0)
    retry_failed: bool = setting()
    detach: bool = setting()
    jobs_per_gpu: int = setting(low=1)
    mirror: str = setting(choices=("sweep", "job"))
