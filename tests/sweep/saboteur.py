"""`lpgnn`, with jobs that go wrong on purpose and a log of every epoch that is computed.

Run as a script; its worker processes import it again, so that they are sabotaged too.

    SABOTAGE_LOG     file that gets one line "<job folder> <epoch>" for each epoch
    SABOTAGE_RAISE   seeds whose jobs raise in epoch 4
    SABOTAGE_KILL    seeds whose jobs are killed by SIGKILL in epoch 4
    SABOTAGE_SLEEP   seconds that every epoch takes longer
"""

from __future__ import annotations

import os
import signal
import sys
import time

from lpgnn_cli.training.fit import UnitFit

BAD_EPOCH = 4
_epoch = UnitFit._epoch


def seeds(name: str) -> set[int]:
    return {int(seed) for seed in os.environ.get(name, "").split(",") if seed}


def sabotaged_epoch(self: UnitFit, epoch: int) -> dict[str, float]:
    seed = self.task.unit.seed
    if epoch == BAD_EPOCH and seed in seeds("SABOTAGE_RAISE"):
        raise RuntimeError("sabotage")
    if epoch == BAD_EPOCH and seed in seeds("SABOTAGE_KILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    if log := os.environ.get("SABOTAGE_LOG"):
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{self.task.run.name} {epoch}\n".encode())
        os.close(descriptor)
    time.sleep(float(os.environ.get("SABOTAGE_SLEEP", "0")))
    return _epoch(self, epoch)


UnitFit._epoch = sabotaged_epoch

if __name__ == "__main__":
    from lpgnn_cli.cli import main

    sys.exit(main())
