"""Graphs as dictionaries, without targets: what a served model is asked about, and JSON lines.

Either node-link data, as networkx and many others write it,

    {"nodes": [{"id": 0, "features": [1, 0]}, ...],
     "edges": [{"source": 0, "target": 1, "features": [1]}, ...], "directed": false}

where `edges` may be called `links`, the features of edges may be absent, and an edge of a graph
that is not directed is two arcs; or the arrays that `dataset=graphs` reads: `features`, `source`,
`target` and, if arcs have labels, `arc_labels`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.rows import LONGEST_LINE
from lpgnn_cli.errors import UserError

# How the name of a file ends that has a graph on each line.
JSON_LINES = ".jsonl"


@dataclass(frozen=True)
class _Arrays:
    """One row per node, and one per arc."""

    features: npt.NDArray[np.float32]
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    labels: npt.NDArray[np.float32]


def read_lines(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """The graphs of a file, one on each line, with their numbers of nodes; no line may be long."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                if line.strip():
                    yield _parsed(line, f"{path}, line {number}")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error


def _parsed(line: bytes, where: str) -> tuple[dict[str, Any], int]:
    if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
        raise UserError(f"{where} has more than {LONGEST_LINE:,} characters.")
    try:
        graph = json.loads(line)
        return graph, len(graph["nodes"] if "nodes" in graph else graph["features"])
    except RecursionError:
        raise UserError(f"{where} is nested too deeply.") from None
    except (ValueError, TypeError, KeyError):
        raise UserError(f"{where} is not a graph in JSON, with nodes and edges.") from None


def from_node_link(graphs: Sequence[Mapping[str, Any]], first: int = 0) -> GraphBatch:
    """The union of the graphs; all of them are class 0, which nobody asks for.

    `first` is the number of the first one, for what is said of them.
    """
    if not graphs:
        raise UserError("there must be at least one graph.")
    found = [_read(graph, f"graph {number}") for number, graph in enumerate(graphs, start=first)]
    for what, widths in (
        ("node", {g.features.shape[1] for g in found}),
        ("edge", {g.labels.shape[1] for g in found if len(g.source)}),
    ):
        if len(widths) > 1:
            counts = " and ".join(map(str, sorted(widths)))
            raise UserError(f"the graphs have different numbers of {what} features: {counts}.")
    width = max((g.labels.shape[1] for g in found if len(g.source)), default=0)
    ptr = np.cumsum([0, *(len(g.features) for g in found)])
    starts = ptr[:-1]
    try:
        return GraphBatch.from_arcs(
            features=torch.from_numpy(np.concatenate([g.features for g in found])),
            source=_joined([g.source + s for g, s in zip(found, starts, strict=True)]),
            target=_joined([g.target + s for g, s in zip(found, starts, strict=True)]),
            arc_labels=_joined([g.labels.reshape(len(g.source), width) for g in found]),
            graph_ptr=torch.from_numpy(ptr),
            targets=torch.zeros(len(found), dtype=torch.int64),
            target_level="graph",
            num_classes=1,
        )
    except ValueError as error:
        raise UserError(f"the graphs cannot be used: {error}.") from error


def _joined(pieces: Sequence[npt.NDArray[Any]]) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(pieces))


def _read(graph: Mapping[str, Any], where: str) -> _Arrays:
    if not isinstance(graph, Mapping):
        raise UserError(f"{where} must be a dictionary, not a {type(graph).__name__}.")
    try:
        arrays = _of_nodes(graph) if "nodes" in graph else _of_arrays(graph)
    except KeyError as error:
        raise UserError(f"{where} lacks {error.args[0]}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{where} cannot be read: {error}.") from error
    for end in (arrays.source, arrays.target):
        if len(end) and not 0 <= end.min() <= end.max() < len(arrays.features):
            raise UserError(f"{where} has an edge to a node that it does not have.")
    return arrays


def _of_nodes(graph: Mapping[str, Any]) -> _Arrays:
    nodes = list(graph["nodes"])
    edges = list(graph["edges"] if "edges" in graph else graph["links"])
    place = {node["id"]: index for index, node in enumerate(nodes)}
    if len(place) < len(nodes):
        raise ValueError("two nodes have the same id")
    try:
        ends = [(place[edge["source"]], place[edge["target"]]) for edge in edges]
    except KeyError as error:
        raise ValueError(f"an edge has no known source or target: {error.args[0]!r}") from None
    labels = [edge.get("features", []) for edge in edges]
    if not graph.get("directed", False):
        back = [(target, source) for source, target in ends if source != target]
        labels += [label for label, (a, b) in zip(labels, ends, strict=True) if a != b]
        ends += back
    return _Arrays(
        _matrix([node.get("features", []) for node in nodes], "the features of nodes"),
        np.array([source for source, _ in ends], dtype=np.int64),
        np.array([target for _, target in ends], dtype=np.int64),
        _matrix(labels, "the features of edges"),
    )


def _of_arrays(graph: Mapping[str, Any]) -> _Arrays:
    source, target = _ends(graph["source"]), _ends(graph["target"])
    if source.shape != target.shape:
        raise ValueError("source and target must be equally long")
    labels = graph.get("arc_labels")
    labels_AD = np.zeros((len(source), 0), np.float32)
    if labels is not None:
        labels_AD = _matrix(labels, "arc_labels")
    if len(labels_AD) != len(source):
        raise ValueError("arc_labels must have one row per arc")
    return _Arrays(_matrix(graph["features"], "features"), source, target, labels_AD)


def _ends(values: Any) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError("source and target must be lists of whole numbers")
    return array.astype(np.int64)


def _matrix(rows: Any, what: str) -> npt.NDArray[np.float32]:
    """One row of numbers per node or edge."""
    try:
        with np.errstate(over="ignore"):  # what 32 bits cannot hold is not finite
            array = np.asarray([list(row) for row in rows], dtype=np.float32)
    except (ValueError, TypeError):
        raise ValueError(f"{what} must be rows of numbers of one length") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite numbers")
    # Of no rows nobody knows how long they are.
    return array.reshape(len(array), -1) if len(array) else np.zeros((0, 0), np.float32)
