"""`lpgnn runs`: a table of past runs."""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rich.measure import Measurement
from rich.table import Table

from lpgnn_cli.config.effects import essence
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import compact, mean_std
from lpgnn_cli.metrics import ACCURACY, TEST, TRAIN, VIOLATION_MEAN
from lpgnn_cli.runfolder import Rule, runs_root
from lpgnn_cli.runsummary import (
    HONEST_ACCURACY,
    OPTIMISTIC_ACCURACY,
    PERSISTENT_ACCURACY,
    RunSummary,
    Selection,
)
from lpgnn_cli.screen import plain_console, printable
from lpgnn_cli.settings import differing, uses_g
from lpgnn_cli.sweeps.nested import NESTED
from lpgnn_cli.tracking.pastruns import PastRun, runs_in_folders, runs_in_store
from lpgnn_cli.tracking.query import Condition, select, value_of
from lpgnn_cli.tracking.store import existing_uri

SHOWN = {
    "name",
    "state",
    "folder",
    "started",
    "dataset",
    "propagation",
    "aggregator",
    "g",
    "layers",
}
SHOWN |= {
    HONEST_ACCURACY,
    PERSISTENT_ACCURACY,
    OPTIMISTIC_ACCURACY,
    VIOLATION_MEAN.on(TEST),
}

# Chosen on test parts.
OPTIMISTIC_TITLES = ("best epoch %, optimistic", "fold max %, optimistic")


def main(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    if arguments.limit is not None and arguments.limit < 1:
        raise UserError(f"--limit must be 1 or more, not {arguments.limit}.")
    conditions = [Condition.parse(text) for text in arguments.filters]
    unreadable: Sequence[object] = ()
    if arguments.store is None:
        place = str(runs_root())
        runs, unreadable = runs_in_folders(runs_root())
    else:
        place = existing_uri(arguments.store or None)
        runs = runs_in_store(place)
    chosen = select(runs, conditions, arguments.sort, arguments.reverse)[: arguments.limit]
    if arguments.diff:
        chosen = _with_differing(chosen)
    if arguments.json:
        print(json.dumps([_plain(run) for run in chosen], indent=1))
    elif arguments.csv:
        _print_csv(chosen)
    elif chosen:
        keys = [condition.key for condition in conditions] + [arguments.sort or "name"]
        if arguments.diff:
            keys = [key for key in keys if any(key in run.metrics for run in chosen)]
            keys += [key for run in chosen for key in run.params]
        extra = [key for key in dict.fromkeys(keys) if arguments.diff or key not in SHOWN]
        _print_table(chosen, extra, model=not arguments.diff)
    else:
        print(f"No runs in {place}." if not runs else f"None of {len(runs)} runs in {place} fits.")
    for folder in unreadable:
        print(f"lpgnn: {folder} has files that cannot be read; left out.", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lpgnn runs",
        description="Past runs, from the run folders or from an MLflow store.",
        epilog=f"example: lpgnn runs dataset=mutag '{OPTIMISTIC_ACCURACY}>0.85' "
        f"--sort {OPTIMISTIC_ACCURACY}",
    )
    parser.add_argument(
        "filters",
        nargs="*",
        metavar="FILTER",
        help="key=value, key!=value or key>number (also <, >=, <=); "
        "key is any setting, metric, name, state or folder",
    )
    parser.add_argument("--sort", metavar="KEY", help="default: started, the newest first")
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument("--limit", type=int, metavar="N", help="show at most so many")
    parser.add_argument(
        "--store", nargs="?", const="", metavar="URI", help="read the MLflow store instead"
    )
    parser.add_argument(
        "--diff", action="store_true", help="of the settings, show those that differ and no others"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--csv", action="store_true", help="everything known, as CSV")
    output.add_argument("--json", action="store_true", help="everything known, as JSON")
    return parser


def _with_differing(runs: Sequence[PastRun]) -> list[PastRun]:
    """The same runs without the settings that all of them share, or that change no results."""
    keys = differing([essence(run.params) for run in runs])
    kept = [{k: run.params[k] for k in keys if k in run.params} for run in runs]
    return [replace(run, params=params) for run, params in zip(runs, kept, strict=True)]


def _print_table(runs: Sequence[PastRun], extra: Sequence[str], model: bool) -> None:
    """With the columns that most are interested in, and these; dataset and model unless `extra`
    has what differs of them."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("started", "dataset", "model") if model else ("started",):
        table.add_column(title, no_wrap=True)
    for title in ("accuracy %", "persistent %", *OPTIMISTIC_TITLES, "violation"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in (*map(_title, extra), "state", "folder"):
        table.add_column(title, no_wrap=True)
    for run in runs:
        summary = RunSummary.from_dict(run.metrics)
        cells = (
            datetime.fromtimestamp(run.started).strftime("%Y-%m-%d %H:%M"),
            *((run.params.get("dataset.name", ""), _model(run)) if model else ()),
            *_figures(summary, run),
            _violation(summary),
            *[_short(run.params.get(key) or value_of(run, key)) for key in extra],
            run.state if run.synced else f"{run.state}, not synced",
            _relative(run.folder),
        )
        table.add_row(*map(printable, cells))
    # Rather long lines than half a folder's name: they are there to be copied.
    console = plain_console()
    needed = Measurement.get(console, console.options.update(width=10_000), table).maximum
    console.width = max(console.width, needed)
    console.print(table)


def _title(key: str) -> str:
    """`state` is how a run ended, and also a setting."""
    return "state sizes" if key == "state" else key.removesuffix(".name")


def _model(run: PastRun) -> str:
    """lagrangian/sum/squared/1, without G where there is none."""
    names = [run.params.get(f"{group}.name", "") for group in ("propagation", "aggregator", "g")]
    if not uses_g(run.params):
        names.pop()
    layers = run.params.get("layers", "null")
    return "/".join(names if layers == "null" else [*names, layers])


def _figures(summary: RunSummary, run: PastRun) -> list[str]:
    """*The* figure of a run, then those beside it.

    It is that of the honest epoch, of `lpgnn eval`, which has none to choose, or of the outer folds
    of a sweep under `protocol=nested`, whose jobs that select have inner validation parts alone.
    """
    if run.params.get("protocol.stage") == "select" and summary.honest.metrics:
        return [f"{_accuracy(summary.honest)} inner validation", "-", "-", "-"]
    nested = Selection.from_dict(run.metrics, NESTED, Rule.NONE)
    if nested.metrics:
        return [f"{_accuracy(nested)} nested", "-", "-", "-"]
    honest = summary.honest if summary.honest.metrics else Selection.of_rescored(run.metrics)
    beside = summary.persistent, summary.optimistic, summary.per_fold_maximum
    return [_accuracy(selection) for selection in (honest, *beside)]


def _accuracy(selection: Selection) -> str:
    figure = selection.figure
    std = figure.std if math.isfinite(figure.std) else None
    if selection.metric.in_per_cent:
        text = mean_std(100 * figure.mean, None if std is None else 100 * std)
    else:
        text = mean_std(figure.mean, std, compact)
    # The title of the column is right for most.
    unusual = selection.metrics and selection.metric is not ACCURACY
    return f"{text} {selection.metric.title}" if unusual else text


def _violation(summary: RunSummary) -> str:
    for part in (TEST, TRAIN):
        if part in summary.violation:
            return f"{summary.violation[part]:.2g}"
    return "-"


def _short(text: str | None) -> str:
    try:
        return f"{float(text or ''):g}"
    except ValueError:
        return text or "-"


def _relative(folder: str) -> str:
    """As it can be copied into the next command."""
    relative = os.path.relpath(folder) if folder else ""
    return folder if relative.startswith("..") else relative


def _plain(run: PastRun) -> dict[str, object]:
    return {
        "started": datetime.fromtimestamp(run.started).isoformat(timespec="seconds"),
        "name": run.name,
        "state": run.state,
        "synced": run.synced,
        "folder": run.folder,
        "metrics": {k: v for k, v in run.metrics.items() if math.isfinite(v)},
        "params": run.params,
    }


def _print_csv(runs: Sequence[PastRun]) -> None:
    own = ["started", "name", "state", "synced", "folder"]
    keys = dict.fromkeys(key for run in runs for key in [*run.metrics, *run.params])
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*own, *keys])
    for run in runs:
        plain = _plain(run)
        writer.writerow([*(plain[key] for key in own), *(value_of(run, key) for key in keys)])
