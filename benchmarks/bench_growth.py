"""How time and memory of an epoch grow with the number of arcs.

One graph whose nodes have ten neighbours each, drawn from all nodes: the worst for caches. A node
task of two classes, 16 features, state 16, hidden layers of 16, one thread. Each size is a
process of its own. Memory is how far the resident memory rises, at its highest, above where it
stood before the graph was made. Beside it: what torch alone takes to gather and sum one row of 16
numbers per arc, which an epoch does three times.

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
from collections.abc import Callable
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
16. The exponent is that of the time between this size and the one before; from 10⁵ to 10⁷ arcs it
is {exponent}. Gather: the sum of one row of 16 numbers per arc by torch's embedding_bag, alone and
in the same process; an epoch reads three such rows per arc. Memory: the graph, the states,
multipliers and optimisers, and what an epoch needs at its highest. The first three epochs, in which
the heap grows, are not timed."""
RANGE = (10**5, 10**7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**k for k in range(4, 8)])
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(*measure(arguments.child))
        return
    columns = ["arcs", "ms per epoch", "ns per arc", "exponent", "gather, ns per arc"]
    columns.append("bytes per arc")
    rows: list[list[str]] = []
    seconds_of: dict[int, float] = {}
    for arcs in arguments.sizes:
        command = [sys.executable, __file__, "--child", str(arcs)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        said = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        seconds, gather, memory = map(float, said.stdout.split())
        exponent = growth(seconds_of | {arcs: seconds}, *[*seconds_of][-1:], arcs)
        seconds_of[arcs] = seconds
        per_arc = [f"{1e9 * seconds / arcs:.0f}", exponent, f"{1e9 * gather / arcs:.1f}"]
        rows.append([f"{arcs:,}", f"{1e3 * seconds:.1f}", *per_arc, f"{memory / arcs:.0f}"])
    table = Table(*columns, title="Growth with the number of arcs")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    note = NOTE.format(exponent=growth(seconds_of, *RANGE) or "not measured")
    store("Growth with the number of arcs", {"note": note, "columns": columns, "rows": rows})


def growth(seconds_of: dict[int, float], *sizes: int) -> str:
    """The exponent of the time between two numbers of arcs; nothing without both of them."""
    if len(sizes) < 2 or not seconds_of.keys() >= {*sizes}:
        return ""
    small, large = sizes
    ratio = seconds_of[large] / seconds_of[small]
    return f"{math.log(ratio) / math.log(large / small):.2f}"


def measure(num_arcs: int) -> tuple[float, float, float]:
    """Seconds of an epoch and of a bare gather, and the bytes that the epoch needs."""
    from lpgnn_cli.tuning import tune_process

    tune_process()
    import torch
    from torch.nn.functional import embedding_bag

    from rivals import lpgnn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    # Everything is imported and compiled before memory is counted.
    words = (f"state=[{STATE}]", f"aggregator.hidden=[{HIDDEN}]", f"readout.hidden=[{HIDDEN}]")
    lpgnn("karate", random_graph(1000), *words)()
    before = memory("VmRSS")
    graph = random_graph(num_arcs)
    epoch = lpgnn("karate", graph, *words)
    repeats = max(7, min(30, 3_000_000 // num_arcs))
    seconds = time_of(epoch, repeats)
    needed = memory("VmHWM") - before
    rows, arcs = torch.randn(graph.num_nodes, HIDDEN), graph.arcs
    starts = arcs.ptr[:-1]
    gather = time_of(lambda: embedding_bag(arcs.source, rows, starts, mode="sum"), repeats)
    return seconds, gather, needed


def time_of(work: Callable[[], object], repeats: int) -> float:
    """The median of the CPU seconds, after a start that does not count."""
    for _ in range(WARM_UP_EPOCHS):
        work()
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds)


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
