"""Load and memory of the machine, as MLflow's page of system metrics shows them."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from lpgnn_cli.tracking.bulk import MetricPoint

# What MLflow looks for on that page.
PREFIX = "system/"


class SystemMetrics:
    """Samples of the whole machine, its GPUs included; a step per sample."""

    def __init__(self) -> None:
        from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
        from mlflow.system_metrics.metrics.gpu_monitor import GPUMonitor

        kinds: tuple[Any, ...] = (CPUMonitor, GPUMonitor)
        self._monitors: list[Any] = []
        for kind in kinds:
            # Without a GPU, or the library that reads it, there is no such monitor.
            with suppress(Exception):
                self._monitors.append(kind())
        self._step = 0
        for monitor in self._monitors:
            # The load is that since the call before.
            monitor.collect_metrics()
            monitor.clear_metrics()

    def sample(self) -> list[MetricPoint]:
        """Since the last one."""
        now, points = round(time.time() * 1000), []
        self._step += 1
        for monitor in self._monitors:
            monitor.collect_metrics()
            for name, value in monitor.aggregate_metrics().items():
                points.append((f"{PREFIX}{name}", float(value), now, self._step))
            monitor.clear_metrics()
        return points
