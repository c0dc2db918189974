"""Node batches on a graph that need not fit into memory: time per arc, and memory.

    python benchmarks/bench_large.py [--large]
    python benchmarks/bench_large.py --one --nodes 10000000 --batch-nodes 100000 --memory "1 GB"

The graph is generated block by block into mapped files. `local`: the neighbours of a node are, but
for one in twenty, within a community of 10,000 numbers around it, as they are in most large graphs
once their nodes are ordered by a search or a partition. `random`: they are anywhere, the worst case
for whatever reads from a disk or a cache. Each measurement runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

COMMUNITY, OUTSIDE = 10_000, 0.05
FEATURES, CLASSES, STATE, HIDDEN = 16, 8, 16, 16
PIECE = 1_000_000


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--nodes", type=int, default=1_000_000)
    words.add_argument("--degree", type=int, default=10)
    words.add_argument("--kind", choices=("local", "random"), default="local")
    words.add_argument("--batch-nodes", type=int, default=0, help="0: the whole graph at once")
    words.add_argument("--memory", default="1 TB")
    words.add_argument("--rule", choices=("one_shot", "gradient"), default="one_shot")
    words.add_argument("--epochs", type=int, default=2)
    words.add_argument("--one", action="store_true", help="this case alone, in this process")
    words.add_argument("--large", action="store_true", help="10⁷ nodes as well")
    words.add_argument("--known", help="a file of figures to store, one line each")
    asked = words.parse_args()
    if asked.one:
        print(json.dumps(measured(asked)), flush=True)
        return
    store_table(_read(asked.known) if asked.known else list(map(_run, _cases(asked.large))))


def _cases(large: bool) -> list[list[str]]:
    blocks = ["--batch-nodes", "100000"]
    cases = [[], blocks, [*blocks, "--memory", "1 MB"], [*blocks, "--kind", "random"]]
    if large:
        cases.append(["--nodes", "10000000", *blocks, "--memory", "1 GB"])
    return cases


def _run(case: list[str]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", *case]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip().splitlines()[-1])
    print(done.stdout.strip(), flush=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _read(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines() if line[:1] == "{"]


def store_table(figures: list[dict[str, Any]]) -> None:
    """Ratios to the first figure: the whole graph in memory."""
    from performance_page import store

    rows = [
        [
            f"{figure['nodes'] * figure['degree']:,}",
            figure["kind"],
            f"{figure['batch']:,}" if figure["batch"] else "whole graph",
            figure["memory"],
            f"{figure['cpu_ns_per_arc']:.0f}",
            f"{figure['cpu_ns_per_arc'] / figures[0]['cpu_ns_per_arc']:.2f}",
            f"{figure['wall_ns_per_arc']:.0f}",
            f"{figure['peak_mib'] / 1024:.2f}",
        ]
        for figure in figures
    ]
    columns = ["arcs", "neighbours", "nodes per step", "data.memory", "CPU ns per arc and epoch"]
    columns += ["÷ whole graph in memory", "wall ns", "peak resident, GiB"]
    note = (
        "`python benchmarks/bench_large.py --large`: one_shot, aggregator sum, state, hidden and "
        "features 16, float32, one thread, the faster of two epochs; generated graphs, ten arcs "
        "into each node."
    )
    # The case of 10⁸ arcs is kept where it is not measured again.
    store("Node batches", {"note": note, "columns": columns, "rows": rows}, key=4)


def mapped(folder: str, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    import math

    import torch

    path = str(Path(folder) / name)
    return torch.from_file(path, shared=True, size=math.prod(shape), dtype=dtype).view(shape)


def generate(nodes: int, degree: int, kind: str, folder: str) -> Any:
    """One graph in mapped files: sources by target, features and classes."""
    import torch

    from lpgnn_cli.data.batch import GraphBatch
    from lpgnn_cli.ops import Arcs

    random = torch.Generator().manual_seed(0)
    arcs = nodes * degree
    source = mapped(folder, "source", (arcs,), torch.int64)
    features = mapped(folder, "features", (nodes, FEATURES), torch.float32)
    targets = mapped(folder, "targets", (nodes,), torch.int64)
    out_degree = torch.zeros(nodes, dtype=torch.int64)
    for first in range(0, nodes, PIECE):
        here = torch.arange(first, min(first + PIECE, nodes))
        anywhere = torch.randint(nodes, (len(here), degree), generator=random)
        if kind == "local":
            start = here - here % COMMUNITY
            near = start[:, None] + torch.randint(COMMUNITY, anywhere.shape, generator=random)
            far = torch.rand(anywhere.shape, generator=random) < OUTSIDE
            anywhere = torch.where(far, anywhere, near.clamp(max=nodes - 1))
        anywhere = anywhere.sort(dim=1).values.flatten()
        source[first * degree : first * degree + len(anywhere)] = anywhere
        out_degree += torch.bincount(anywhere, minlength=nodes)
        values = torch.randn(len(here), FEATURES, generator=random)
        features[first : first + len(here)] = values
        targets[first : first + len(here)] = values[:, :CLASSES].argmax(dim=1)
    zero = torch.zeros(1, dtype=torch.int64)
    ptr = torch.arange(nodes + 1) * degree
    whole = Arcs(source, ptr, torch.cat([zero, out_degree.cumsum(0)]))
    no_labels = torch.empty(arcs, 0)
    return GraphBatch(
        features, whole, no_labels, no_labels, torch.tensor([0, nodes]), targets, "node", CLASSES
    )


def measured(asked: argparse.Namespace) -> dict[str, Any]:
    import torch

    from lpgnn_cli.config.compose import compose
    from lpgnn_cli.data.part import Part
    from lpgnn_cli.model.network import DataShape
    from lpgnn_cli.ops import Arcs
    from lpgnn_cli.propagation import build_propagation
    from lpgnn_cli.training.epoch import train_epoch
    from lpgnn_cli.tuning import tune_process

    tune_process()
    torch.set_num_threads(1)
    words = [
        "dataset=nodes",
        "dataset.path=none",
        "recipe=none",
        "aggregator=sum",
        f"state=[{STATE}]",
    ]
    words += [f"aggregator.hidden=[{HIDDEN}]", f"propagation.updates={asked.rule}"]
    words += [
        "propagation.loss_reduction=mean",
        "propagation.gain=null",
        f"data.memory='{asked.memory}'",
    ]
    if asked.batch_nodes:
        words.append(f"optim.batch_nodes={asked.batch_nodes}")
    config = compose("train", words)
    found: dict[str, Any] = {"nodes": asked.nodes, "degree": asked.degree, "kind": asked.kind}
    found |= {"batch": asked.batch_nodes, "memory": asked.memory}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        started = time.perf_counter()
        batch = generate(asked.nodes, asked.degree, asked.kind, folder)
        found["generate"] = time.perf_counter() - started
        if not asked.batch_nodes:
            batch = replace(batch, arcs=Arcs.into(batch.arcs.source, batch.arcs.ptr, asked.nodes))
        torch.manual_seed(0)
        propagation = build_propagation(
            config, DataShape.of(batch), {"train": batch}, like=batch.features
        )
        part = Part(batch, torch.arange(0, asked.nodes, 10))
        order = torch.Generator().manual_seed(0)
        times = []
        for epoch in range(1, asked.epochs + 1):
            started, cpu = time.perf_counter(), time.process_time()
            metrics = train_epoch(propagation, epoch, part, None, order, asked.batch_nodes or None)
            times.append((time.perf_counter() - started, time.process_time() - cpu))
        found["loss"] = float(metrics["train/loss"])
        found["epochs"] = times
        found["wall_ns_per_arc"], found["cpu_ns_per_arc"] = (
            1e9 * min(kind) / batch.num_arcs for kind in zip(*times, strict=True)
        )
    found["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


if __name__ == "__main__":
    main()
