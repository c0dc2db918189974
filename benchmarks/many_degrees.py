"""Graphs of overlapping cliques in TU format, without labels and with many different degrees.

`python benchmarks/many_degrees.py FOLDER` writes FOLDER/CLIQUES.zip: 900 collaborations around one
person, whose three classes differ in how many cliques there are and how large they are. What serves
as features there is in docs/choices.md, from

    lpgnn train dataset=tu dataset.name=CLIQUES dataset.path=FOLDER/CLIQUES.zip protocol.folds=5 \
      dataset.features=degree

and the same with degree_classes and constant.
"""

from __future__ import annotations

import itertools
import sys
import zipfile
from pathlib import Path

import numpy as np

GRAPHS = 900
# By class: the mean number of cliques, and their mean size.
CLASSES = ((2, 25), (5, 14), (9, 8))
# Share of those who are there already that join a clique.
JOINING = 0.08


def collaboration(random: np.random.RandomState, cliques: int, size: int) -> set[tuple[int, int]]:
    """The edges of one graph; node 0 is in every clique."""
    edges, nodes = set(), 1
    for _ in range(max(1, random.poisson(cliques))):
        joining = [v for v in range(1, nodes) if random.rand() < JOINING]
        new = range(nodes, nodes + max(2, int(random.gamma(3, size / 3))))
        members = [0, *joining, *new]
        edges |= set(itertools.combinations(members, 2))
        nodes += len(new)
    return edges


def main(folder: Path) -> None:
    random = np.random.RandomState(0)
    arcs, graph_of_node, first = [], [], 1
    for number in range(GRAPHS):
        edges = collaboration(random, *CLASSES[number % len(CLASSES)])
        for u, v in sorted(edges):
            arcs += [f"{first + u}, {first + v}", f"{first + v}, {first + u}"]
        nodes = 1 + max(v for _, v in edges)
        graph_of_node += [str(number + 1)] * nodes
        first += nodes
    files = {
        "A": arcs,
        "graph_indicator": graph_of_node,
        "graph_labels": [str(number % len(CLASSES)) for number in range(GRAPHS)],
    }
    path = folder / "CLIQUES.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, lines in files.items():
            archive.writestr(f"CLIQUES/CLIQUES_{name}.txt", "\n".join(lines) + "\n")
    print(f"{path}: {GRAPHS} graphs, {first - 1} nodes, {len(arcs)} arcs")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
