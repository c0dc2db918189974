"""How time and memory of an epoch grow with the number of arcs.

One graph whose nodes have ten neighbours each, drawn from all nodes: the worst for caches. A node
task of two classes, 16 features, state 16, hidden layers of 16, one thread. Each size is a
process of its own. Memory is how far the resident memory rises, at its highest, above where it
stood before the graph was made.

    python benchmarks/bench_growth.py [--sizes 10000 100000 ...]
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from performance_page import store

if TYPE_CHECKING:
    from lpgnn_cli.data.batch import GraphBatch

DEGREE, FEATURES, STATE, HIDDEN = 10, 16, 16, 16
# The heap has its size after these.
WARM_UP_EPOCHS = 3
NOTE = """\
One thread, CPU time; one graph with ten random neighbours per node, 16 features, state 16, hidden
16. The exponent is that of the time between this size and the one before. Memory: the graph, the
states, multipliers and optimisers, and what an epoch needs at its highest. The first three epochs,
in which the heap grows, are not timed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**k for k in range(4, 8)])
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(*measure(arguments.child))
        return
    columns = ["arcs", "ms per epoch", "ns per arc", "exponent", "bytes per arc"]
    rows, before = [], None
    for arcs in arguments.sizes:
        command = [sys.executable, __file__, "--child", str(arcs)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        said = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        seconds, memory = map(float, said.stdout.split())
        exponent = ""
        if before is not None:
            exponent = f"{math.log(seconds / before[1]) / math.log(arcs / before[0]):.2f}"
        before = (arcs, seconds)
        per_arc = [f"{1e9 * seconds / arcs:.0f}", exponent, f"{memory / arcs:.0f}"]
        rows.append([f"{arcs:,}", f"{1e3 * seconds:.1f}", *per_arc])
    table = Table(*columns, title="Growth with the number of arcs")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    store("Growth with the number of arcs", {"note": NOTE, "columns": columns, "rows": rows})


def measure(num_arcs: int) -> tuple[float, float]:
    """Seconds of an epoch, and the bytes that all of it needs."""
    from lpgnn_cli.allocator import tune_allocator

    tune_allocator()
    import torch

    from rivals import lpgnn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    # Everything is imported and compiled before memory is counted.
    words = (f"state=[{STATE}]", f"aggregator.hidden=[{HIDDEN}]", f"readout.hidden=[{HIDDEN}]")
    lpgnn("karate", random_graph(1000), *words)()
    before = memory("VmRSS")
    epoch = lpgnn("karate", random_graph(num_arcs), *words)
    repeats = max(5, min(30, 3_000_000 // num_arcs))
    for _ in range(WARM_UP_EPOCHS):
        epoch()
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        epoch()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds), memory("VmHWM") - before


def random_graph(num_arcs: int) -> GraphBatch:
    import torch

    from lpgnn_cli.data.batch import GraphBatch

    nodes = num_arcs // DEGREE
    return GraphBatch.from_arcs(
        features=torch.randn(nodes, FEATURES),
        source=torch.randint(0, nodes, (num_arcs,)),
        target=torch.arange(nodes).repeat_interleave(DEGREE),
        graph_ptr=torch.tensor([0, nodes]),
        targets=torch.randint(0, 2, (nodes,)),
        target_level="node",
        num_classes=2,
    )


def memory(name: str) -> float:
    """Bytes, as Linux counts them for this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


if __name__ == "__main__":
    main()
