"""Graphs in memory as a dataset of the command line: a file that a run can come back to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lpgnn_cli.data.batch import GraphBatch
from lpgnn_cli.data.datasets.graphs import save_graphs as write_graphs
from lpgnn_cli.data.masks import Masks
from lpgnn_cli.data.pyg import from_pyg, masks_of
from lpgnn_cli.runfolder import runs_root


def save_graphs(graphs: Any, path: str | Path) -> None:
    """Write PyTorch Geometric graphs, or a GraphBatch, for `lpgnn train dataset=graphs`."""
    graphs = _kept(graphs)
    write_graphs(as_batch(graphs), Path(path), masks_in(graphs))


def with_stored_graphs(words: Sequence[str], flat: dict[str, Any]) -> dict[str, Any]:
    """The settings with the name of a file where `dataset` holds graphs.

    The file is named after its content and lies beside the runs, so that they can be resumed and
    scored later, and a sweep knows its jobs again.
    """
    dataset = _kept(flat.get("dataset"))
    if dataset is None or _is_named(dataset):
        return flat
    batch = as_batch(dataset)
    masks = masks_in(dataset)
    name = batch.fingerprint()[:20] + (f"-{masks.fingerprint()[:8]}" if masks else "")
    path = runs_root() / "graphs" / f"{name}.npz"
    if not path.is_file():
        write_graphs(batch, path, masks)
    flat = {**flat, "dataset": "graphs", "dataset.path": path}
    if not any(word.startswith("protocol=") for word in words):
        if masks is not None:
            flat.setdefault("protocol", "masks")
        elif batch.num_graphs == 1:
            flat.setdefault("protocol", "transductive")
    return flat


def as_batch(graphs: Any) -> GraphBatch:
    if isinstance(graphs, GraphBatch):
        graphs.validate()
        return graphs
    return from_pyg(graphs)


def masks_in(graphs: Any) -> Masks | None:
    """The splits of nodes that graphs bring along; a GraphBatch has none."""
    return None if isinstance(graphs, GraphBatch) else masks_of(graphs)


def _kept(graphs: Any) -> Any:
    """What can be gone through once only, as a list."""
    return list(graphs) if isinstance(graphs, Iterator) else graphs


def _is_named(dataset: Any) -> bool:
    """One name, or several to sweep over."""
    if isinstance(dataset, list | tuple):
        return bool(dataset) and all(isinstance(entry, str) for entry in dataset)
    return isinstance(dataset, str)
