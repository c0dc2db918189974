"""Peak memory of a training epoch: all graphs at once against mini-batches of them.

    python benchmarks/bench_memory.py [dataset] [graphs per batch]

Each side runs in a process of its own. What is measured is how far the resident memory rises, at
its highest, above where it stood before the first epoch, with the graphs, their states and their
multipliers in place; what optimisers remember of those comes on top on both sides.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STATE, HIDDEN = 50, 50


def main() -> None:
    dataset = sys.argv[1] if len(sys.argv) > 1 else "nci1"
    size = sys.argv[2] if len(sys.argv) > 2 else "128"
    if len(sys.argv) > 3:
        print(rise(dataset, None if size == "all" else int(size)))
        return
    peaks = {}
    for batch in ("all", size):
        command = [sys.executable, __file__, dataset, batch, "measure"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr.strip().splitlines()[-1])
        peaks[batch] = float(done.stdout)
        graphs = "all graphs at once" if batch == "all" else f"{batch} graphs per batch"
        print(f"{dataset}, {graphs:>24}: {peaks[batch]:8.1f} MiB")
    print(f"{dataset}: batches need {peaks[size] / peaks['all']:.2f} of the memory")


def rise(dataset: str, batch_graphs: int | None) -> float:
    """MiB that two epochs need on top of the graphs and their variables."""
    import torch

    from lpgnn_cli.config.compose import compose
    from lpgnn_cli.data import load_dataset
    from lpgnn_cli.data.part import Part
    from lpgnn_cli.model.network import DataShape
    from lpgnn_cli.propagation import build_propagation
    from lpgnn_cli.training.epoch import train_epoch
    from lpgnn_cli.tuning import tune_process

    tune_process()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = [f"state=[{STATE}]", f"aggregator.hidden=[{HIDDEN}]"]
    words = [f"dataset={dataset}", "recipe=none", *sizes]
    config = compose("train", words)
    batch = load_dataset(config.dataset, config.data.root, seed=0).batch
    propagation = build_propagation(
        config, DataShape.of(batch), {"train": batch}, like=batch.features
    )
    order = torch.Generator().manual_seed(0)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    for epoch in (1, 2):
        train_epoch(propagation, epoch, Part(batch), batch_graphs, order)
    return memory("VmHWM") - before


def memory(name: str) -> float:
    """MiB, as Linux counts them for this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(kilobytes) / 1024


if __name__ == "__main__":
    main()
