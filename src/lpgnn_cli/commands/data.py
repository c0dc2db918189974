"""`lpgnn data`: which datasets there are, what is in them, and getting them."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from lpgnn_cli.config.suggest import did_you_mean
from lpgnn_cli.errors import UserError
from lpgnn_cli.metrics import CLASSES, NUMBERS
from lpgnn_cli.screen import plain_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from lpgnn_cli.data import Dataset, GraphBatch

BINS = 12
BAR_WIDTH = 40


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="lpgnn data",
        description="List the datasets, describe one, or get them ready. Settings may follow a"
        " name: lpgnn data describe tu dataset.name=BZR dataset.path=BZR.zip",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="counts, source and presence of all datasets (default)")
    describe = actions.add_parser("describe", help="counts and histograms of one dataset")
    describe.add_argument("name", metavar="NAME")
    describe.add_argument("settings", metavar="key=value", nargs="*")
    prepare = actions.add_parser("prepare", help="fetch datasets and check them")
    prepare.add_argument("words", metavar="NAME", nargs="+")
    # `dataset=mutag`, as other commands have it, means the same.
    options = parser.parse_args([word.removeprefix("dataset=") for word in argv])
    if options.action == "describe":
        _describe(options.name, options.settings)
    elif options.action == "prepare":
        settings = [word for word in options.words if "=" in word]
        names = [word for word in options.words if "=" not in word]
        # All names first: a typo in the last must not wait for the downloads of the others.
        for name in names:
            _check_name(name)
        for name in names:
            _prepare(name, settings)
    else:
        _list()
    return 0


def _check_name(name: str) -> None:
    from lpgnn_cli.config.compose import make_loader
    from lpgnn_cli.config.explain import options

    known = options(make_loader(), "dataset")
    if name not in known:
        hint = did_you_mean(name, known) or f"Datasets: {', '.join(known)}."
        raise UserError(f"there is no dataset {name}. {hint}")


def _load(name: str, settings: Sequence[str]) -> Dataset:
    _check_name(name)
    from lpgnn_cli.config.compose import compose
    from lpgnn_cli.data import load_dataset

    config = compose("train", [f"dataset={name}", *settings])
    return load_dataset(config.dataset, config.data.root, config.seed)


def _list() -> None:
    from rich.table import Table

    from lpgnn_cli.config.dataset import DATASETS
    from lpgnn_cli.config.installed import load_plugins
    from lpgnn_cli.data import node_files, sources
    from lpgnn_cli.data.catalogue import CATALOGUE, COLLECTION

    folder = sources.data_folder(None)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("dataset")
    for heading in ("graphs", "nodes", "arcs", "classes"):
        table.add_column(heading, justify="right")
    for heading in ("features", "source", "on disk"):
        table.add_column(heading)
    for name, entry in CATALOGUE.items():
        counts = (entry.graphs, entry.nodes, entry.arcs, entry.classes)
        if entry.source == COLLECTION:
            on_disk = "yes" if sources.find_on_disk(entry.tu_name or "", folder) else "no"
        elif entry.source in (node_files.BY_HAND, node_files.DOWNLOAD):
            on_disk = "yes" if node_files.find_on_disk(name, None) else "no"
        else:
            on_disk = "-"
        shown = ["varies" if count is None else f"{count:,}" for count in counts]
        table.add_row(name, *shown, entry.features, entry.source, on_disk)
    load_plugins()
    for name, option in DATASETS.by_name.items():
        if option.origin:
            table.add_row(name, *[""] * 4, "", option.origin, "-")
    table.add_row("tu", *[""] * 4, "any", "dataset.name= [dataset.path=]", "")
    table.add_row("graphs", *[""] * 4, "any", "dataset.path=", "")
    table.add_row("nodes", *[""] * 4, "any", "dataset.path=", "")
    _print(table, f"Data folder: {folder}")


def _prepare(name: str, settings: Sequence[str]) -> None:
    dataset = _load(name, settings)
    batch = dataset.batch
    _print(
        f"{name}: {batch.num_graphs:,} graphs, {batch.num_nodes:,} nodes, {batch.num_arcs:,} arcs, "
        f"{batch.num_classes} classes; ready."
    )


def _describe(name: str, settings: Sequence[str]) -> None:

    dataset = _load(name, settings)
    batch = dataset.batch
    targets = batch.targets if dataset.scored is None else batch.targets[dataset.scored]
    features = batch.features.shape[1]
    sizes, degrees = batch.graph_ptr.diff(), batch.arcs.in_degree
    isolated = int(((degrees == 0) & (batch.arcs.source_ptr.diff() == 0)).sum())
    lines = {
        "graphs": f"{batch.num_graphs:,}",
        "components": f"{components(batch):,}",
        "nodes": f"{batch.num_nodes:,} ({isolated:,} without arcs)",
        "arcs": f"{batch.num_arcs:,}",
        "targets": _targets(batch, targets),
        **_splits(dataset),
        "features": f"{features} ({int(dataset.continuous.sum())} continuous, "
        f"{dataset.positional} positional)",
        "arc labels": f"{batch.arc_in.shape[1]}",
        "fingerprint": dataset.fingerprint(),
    }
    width = max(map(len, lines)) + 2
    _print(dataset.name, *(f"  {key:<{width}}{value}" for key, value in lines.items()))
    _print("", "nodes of a graph", *histogram(sizes), "", "arcs into a node", *histogram(degrees))


def _targets(batch: GraphBatch, targets: Tensor) -> str:
    import torch

    title = f"{batch.num_classes} {batch.task} of {batch.target_level}s"
    if batch.task == NUMBERS:
        return f"{title} ({targets.min():.4g} to {targets.max():.4g})"
    of_classes = batch.task == CLASSES
    counts = torch.bincount(targets, minlength=batch.num_classes) if of_classes else targets.sum(0)
    return f"{title} ({', '.join(f'{count:,}' for count in counts.tolist())})"


def _splits(dataset: Dataset) -> dict[str, str]:
    """Those that the dataset brings along: of its nodes, or of its graphs."""
    if dataset.masks is not None:
        masks = (dataset.masks.train, dataset.masks.val, dataset.masks.test)
        sizes = "/".join(f"{int(mask[0].sum()):,}" for mask in masks)
        return {"splits": f"{masks[0].shape[0]} of the nodes ({sizes} in the first)"}
    if dataset.parts is not None:
        sizes = "/".join(f"{len(dataset.parts[part]):,}" for part in ("train", "val", "test"))
        return {"splits": f"1 of the graphs ({sizes})"}
    return {}


def components(batch: GraphBatch) -> int:
    """How many sets of nodes have no arc between them."""
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = (batch.arcs.source.numpy(), batch.arcs.target.numpy())
    shape = (batch.num_nodes, batch.num_nodes)
    return int(connected_components(coo_array((np.ones(batch.num_arcs), ends), shape))[0])


def histogram(values: Tensor) -> list[str]:
    """Bars over equal ranges of integers, at most `BINS` of them."""
    import torch

    low, high = int(values.min()), int(values.max())
    step = (high - low) // BINS + 1
    counts = torch.bincount((values - low) // step).tolist()
    ranges = [(low + step * k, min(low + step * (k + 1) - 1, high)) for k in range(len(counts))]
    labels = [f"{a}" if a == b else f"{a}-{b}" for a, b in ranges]
    width = max(map(len, labels))
    digits = max(len(f"{count:,}") for count in counts)
    # Rounded up: a range with one member still shows.
    bars = ["█" * -(-count * BAR_WIDTH // max(counts)) for count in counts]
    rows = zip(labels, counts, bars, strict=True)
    return [f"  {label:>{width}}  {n:>{digits},}  {bar}".rstrip() for label, n, bar in rows]


def _print(*items: object) -> None:

    # Tables for a pipe or a file are as wide as they need to be.
    console = plain_console(highlight=False, width=None if sys.stdout.isatty() else 160)
    for item in items:
        console.print(item, markup=False, soft_wrap=isinstance(item, str))
