"""What a process that trains asks of its libraries; best before torch is imported."""

from lpgnn_cli.allocator import tune_allocator
from lpgnn_cli.idle import sleep_soon


def tune_process() -> None:
    tune_allocator()
    sleep_soon()
