"""What a run in batches of nodes needs, said before it starts; a run that cannot fit is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.room import free_memory, memory_limit
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.network import state_sizes
from lpgnn_cli.propagation.by_blocks import numbers_that_pass, numbers_that_stay
from lpgnn_cli.runfolder import runs_root
from lpgnn_cli.training.device import DTYPES

# Python, torch and the rest of the program.
PROGRAM = 400 * 2**20
# Of an arc in a step: its ends and the two orders, with what they are made from.
BYTES_OF_A_STEPS_ARC = 80
# Matrices with a row per node of a step that are there at once, forward and backward.
MATRICES = 8


@dataclass(frozen=True)
class Needs:
    """Bytes, about."""

    memory: int
    disk: int

    def __str__(self) -> str:
        return f"about {_size(self.memory)} of memory and {_size(self.disk)} of disk"


def node_batch_needs(config: TrainConfig, batch: GraphBatch) -> Needs:
    """Of training, evaluation and checkpoints of one unit."""
    assert config.optim.batch_nodes is not None
    nodes, item = batch.num_nodes, DTYPES[config.precision].itemsize
    sizes = state_sizes(config, batch.num_classes)
    stay = nodes * item * numbers_that_stay(config, sizes)
    passing = nodes * item * (numbers_that_pass(sizes) + batch.num_classes)
    tensors = [batch.arcs.source, batch.arcs.ptr, batch.arcs.source_ptr]
    tensors += [batch.arc_in, batch.arc_out, batch.targets, batch.features]
    # The features once as they came and once as they are scaled.
    graph = sum(t.numel() * t.element_size() for t in tensors) + batch.features.numel() * item
    limit = memory_limit(config.data)
    mapped = max(0, stay - limit)
    in_memory = stay - mapped
    if mapped or in_memory + passing > limit:
        mapped += passing
    else:
        in_memory += passing
    # A checkpoint has its own files of what is mapped: last, and what validation selects.
    disk = 4 * mapped
    return Needs(PROGRAM + graph + in_memory + _step(config, batch, item), disk)


def _step(config: TrainConfig, batch: GraphBatch, item: int) -> int:
    assert config.optim.batch_nodes is not None
    nodes = min(config.optim.batch_nodes, batch.num_nodes)
    arcs = -(-batch.num_arcs * nodes // max(1, batch.num_nodes))
    rows = min(batch.num_nodes, nodes + arcs)
    widths = [*config.state, *config.aggregator.hidden, batch.features.shape[1]]
    return arcs * BYTES_OF_A_STEPS_ARC + MATRICES * rows * max(widths) * item


def check_needs(config: TrainConfig, batches: Iterable[GraphBatch], workers: int) -> Needs | None:
    """Refuse what does not fit beside what else is in memory and on the disk; None where a run is
    not in batches of nodes. So many units run side by side."""
    if config.optim.batch_nodes is None:
        return None
    largest = max(batches, key=lambda batch: batch.num_arcs)
    one = node_batch_needs(config, largest)
    needs = Needs(one.memory * workers, one.disk * workers)
    loaded = largest.features.numel() * largest.features.element_size()
    if needs.memory - loaded > free_memory():
        raise UserError(
            f"the run needs {needs}, and {_size(free_memory())} of memory are free: lower "
            "data.memory or optim.batch_nodes."
        )
    free = shutil.disk_usage(_existing(runs_root())).free
    if needs.disk > free:
        raise UserError(
            f"the run needs {needs}, and {_size(free)} of disk are free at {runs_root()}: set "
            "LPGNN_RUNS to a folder on a larger one, or raise data.memory."
        )
    return needs


def _existing(folder: Path) -> Path:
    return folder if folder.exists() or folder == folder.parent else _existing(folder.parent)


def _size(size: int) -> str:
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"
