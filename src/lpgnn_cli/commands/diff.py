"""`lpgnn diff A B`: what differs between runs, and whether their figures do."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from html import escape
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.errors import UserError
from lpgnn_cli.reporting.contrast import Contrast, contrast
from lpgnn_cli.reporting.grid import Grid, print_grid
from lpgnn_cli.reporting.page import grid_html, page, picture_html
from lpgnn_cli.runfolder import RunFolder
from lpgnn_cli.screen import plain_console, printable
from lpgnn_cli.tracking.named import find_run

MOST = 26
CAPTION = "Mean over units by epoch; bands: one standard deviation of the test part"
TESTS = (
    "Paired by fold (seeds of a fold are averaged; generated data by seed). p: exact test by sign "
    "flips; p corrected: t-test with the variance corrected for the overlap of training folds "
    "(Nadeau and Bengio). What is chosen on test folds is optimistic."
)


def main(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    if not 2 <= len(arguments.runs) <= MOST:
        raise UserError(f"diff compares 2 to {MOST} runs, not {len(arguments.runs)}.")
    output = Path(arguments.output) if arguments.output else None
    if output is not None and output.suffix not in (".html", ".png"):
        raise UserError(f"--output {output} must end in .html (everything) or .png (the curves).")
    found = contrast([_open(run, arguments.store or None) for run in arguments.runs])
    if output is None:
        _print(found, plain_console())
        return 0
    from lpgnn_cli.reporting.contrast_figure import curves_png

    picture = curves_png(found.runs)
    if output.suffix == ".html":
        _write(output, _html(found, picture).encode())
    elif picture is None:
        raise UserError("none of these runs has a curve yet.")
    else:
        _write(output, picture)
    print(f"Written to {output}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lpgnn diff",
        description="What differs between runs: settings, code, data, and figures, with a paired "
        "test where they share folds. The first run is what the others are compared with.",
        epilog="example: lpgnn diff runs/train/... runs/train/... --output diff.html",
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="a run folder, its name, or an MLflow run id"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="write there instead of to the screen: .html with everything, curves included, or "
        ".png with the curves alone",
    )
    parser.add_argument("--store", metavar="URI", help="the MLflow store that ids are looked up in")
    return parser


def _open(run: str, store: str | None) -> tuple[str, RunFolder]:
    folder = find_run(run, store)
    command = folder.read_record().command
    if command != "train":
        raise UserError(f"{run} is of lpgnn {command}: diff compares runs of lpgnn train.")
    relative = os.path.relpath(folder.path)
    return str(folder.path) if relative.startswith("..") else relative, folder


def _parts(found: Contrast) -> Iterator[tuple[str, Grid | None, list[str]]]:
    """Heading, grid and notes of what there is to say."""
    settings = found.settings()
    nothing = [] if settings.rows else ["No setting that results depend on."]
    yield "Settings that differ", settings, [*nothing, *found.notes_on_settings()]
    circumstances, same = found.circumstances()
    yield "Code, data and machine", circumstances, [same] if same else []
    yield "Figures", found.figures(), []
    yield "Paired tests", found.tests(), [TESTS]


def _print(found: Contrast, console: Console) -> None:
    for run in found.runs:
        console.print(Text(f"{run.letter}  {run.title}", style="bold"))
        console.print(Text(f"   {printable(run.place)}"), soft_wrap=True)
    for heading, grid, notes in _parts(found):
        console.print(Text(f"\n{heading}", style="italic"))
        if grid is not None and grid.rows:
            print_grid(grid, console)
        for note in notes:
            console.print(Text(printable(note), style="dim"))


def _html(found: Contrast, picture: bytes | None) -> str:
    runs = [[run.letter, run.title, run.place] for run in found.runs]
    body = [grid_html(Grid(["", "what ran", "run"], runs, labels=2))]
    for heading, grid, notes in _parts(found):
        body.append(f"<h2>{escape(heading)}</h2>")
        body += [grid_html(grid)] if grid is not None and grid.rows else []
        body += [f'<p class="legend">{escape(note)}</p>' for note in notes]
    if picture is not None:
        body += ["<h2>Curves</h2>", picture_html(picture, "png", CAPTION)]
    *first, last = found.header
    return page(f"What differs between {', '.join(first)} and {last}", "\n".join(body))


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path.parent} cannot be made: {error.strerror}.") from error
    write_atomically(path, content)
