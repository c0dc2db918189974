"""`lpgnn report`: the paper's tables with what has been measured here."""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.config.suggest import did_you_mean
from lpgnn_cli.errors import UserError
from lpgnn_cli.formatting import count, duration
from lpgnn_cli.paper.document import (
    Findings,
    Report,
    cells_csv,
    comparisons_csv,
    find,
    write_report,
)
from lpgnn_cli.paper.estimate import Estimate, Rates
from lpgnn_cli.paper.grids import (
    GRIDS,
    GridSweep,
    collect_grids,
    grids_csv,
    grids_in_folders,
    grids_section,
    read_grids,
)
from lpgnn_cli.paper.grids import KEPT as KEPT_GRIDS
from lpgnn_cli.paper.nested import (
    KEPT,
    NestedSweep,
    collect_sweeps,
    read_sweeps,
    sweeps_in_folders,
    sweeps_in_store,
)
from lpgnn_cli.paper.nested_section import comparison_rows, nested_csv, nested_section
from lpgnn_cli.paper.plan import commands, missing_runs, missing_sweeps, plan
from lpgnn_cli.paper.reach import draw_reach, reach_report
from lpgnn_cli.paper.reference import Table, reach_tables, reference_tables
from lpgnn_cli.paper.results import (
    RUNS,
    collect_runs,
    default_results,
    read_notes,
    read_results,
    write_results,
)
from lpgnn_cli.paper.runs import PresetRun, runs_in_folders, runs_in_store
from lpgnn_cli.processes import cores
from lpgnn_cli.runfolder import runs_root
from lpgnn_cli.screen import plain_console
from lpgnn_cli.sweeps.nested import NESTED

COMMANDS = "commands"
FORMATS = ("table", "markdown", "csv", "latex", "html", COMMANDS)
SUFFIXES = {".md": "markdown", ".csv": "csv", ".tex": "latex", ".html": "html"}
COMPARISONS = "comparisons"
REACH = "reach"
# What `table=` knows beside the paper's tables.
OTHERS = (COMPARISONS, NESTED, GRIDS)
ROUGH = (
    "~: nothing on that dataset tells; by epochs x layers x graphs, at the median pace of the same "
    "propagation on other datasets."
)


def main(argv: list[str]) -> int:
    arguments = _parser().parse_args(argv)
    words = _words(arguments)
    if words and words[0] == "collect":
        return _collect(arguments, words[1:])
    if words and words[0] == "plan":
        return _plan(arguments, words[1:])
    if arguments.format == COMMANDS:
        raise UserError(f"--format {COMMANDS} goes with `lpgnn report plan`.")
    if REACH in words and len(words) > 1:
        raise UserError("reach is a report of its own: write `lpgnn report reach` alone.")
    with tempfile.TemporaryDirectory(prefix="lpgnn-report-") as scratch:
        return _report(arguments, words, Path(scratch))


def _parser() -> argparse.ArgumentParser:
    tables = ", ".join(reference_tables())
    parser = argparse.ArgumentParser(
        prog="lpgnn report",
        description="The paper's tables beside what has been measured here.",
        epilog=f"tables: {tables}, {NESTED}: sweeps under protocol=nested, and {GRIDS}: "
        "sweeps over the paper's grids. "
        f"`table={COMPARISONS} --format csv` gives the paired tests. "
        "`lpgnn report collect` keeps what the tables need of finished runs in results/; "
        "`lpgnn report plan` says what they still lack and how long that may take, and with "
        f"`--format {COMMANDS}` prints what runs it.",
    )
    parser.add_argument(
        "what",
        nargs="*",
        metavar="WHAT",
        help="paper (all tables, the default), table=NAME (several may be given), reach (how far "
        "labels travel, and what it costs), collect or plan",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--results", metavar="FOLDER", help="read collected results (default: results/)"
    )
    source.add_argument(
        "--runs", nargs="?", const="", metavar="ROOT", help="read run folders (default: runs/)"
    )
    source.add_argument(
        "--store", nargs="?", const="", metavar="URI", help="read an MLflow store or server"
    )
    parser.add_argument("--format", choices=FORMATS, help="default: table, or by the file's name")
    parser.add_argument("--output", metavar="FILE", help="write there instead of to the screen")
    return parser


def _words(arguments: argparse.Namespace) -> list[str]:
    """What is asked for, also where it stands behind --runs or --store like a value of theirs."""
    words: list[str] = list(arguments.what)
    for flag in ("runs", "store"):
        value = getattr(arguments, flag) or ""
        if value in ("paper", "collect", "plan", REACH) or value.startswith("table="):
            words.append(value)
            setattr(arguments, flag, "")
    return words


def _report(arguments: argparse.Namespace, words: Sequence[str], scratch: Path) -> int:
    reach = list(words) == [REACH]
    tables, others = (list(reach_tables().values()), set[str]()) if reach else _tables(words)
    output = Path(arguments.output) if arguments.output else None
    form = arguments.format or (SUFFIXES.get(output.suffix, "table") if output else "table")
    if GRIDS in others and arguments.store is not None:
        raise UserError(f"table={GRIDS} is read from run folders or collected results alone.")
    runs, source, notes = _read(arguments, scratch)
    sweeps, grids = _read_sweeps(arguments, scratch), _read_grids(arguments)
    findings = find(tables, runs)
    everything = not reach and len(tables) == len(reference_tables())
    if form == "csv":
        if NESTED in others:
            return _deliver(nested_csv(sweeps), output)
        if GRIDS in others:
            return _deliver(grids_csv(grids), output)
        if COMPARISONS in others:
            more = comparison_rows(sweeps) if everything else []
            return _deliver(comparisons_csv(findings, more), output)
        return _deliver(cells_csv(findings), output)
    if reach:
        report = reach_report(findings, source, notes)
    else:
        report = write_report(findings, source, notes)
    if GRIDS in others or (grids and everything):
        report.sections.append(grids_section(grids))
    if NESTED in others or (sweeps and everything):
        report.sections.append(nested_section(sweeps))
    if form == "table":
        return _print(report, output)
    return _deliver(_render(report, findings, form, scratch), output)


def _tables(words: Sequence[str]) -> tuple[list[Table], set[str]]:
    """The paper's tables that are asked for, and what else is."""
    known = reference_tables()
    names: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if word == "paper":
            names += known
        elif key == "table" and equals:
            names += value.split(",")
        else:
            raise UserError(
                f"{word} is not known here: write paper, table=NAME, reach, collect or plan."
            )
    wrong = [name for name in names if name not in known and name not in OTHERS]
    if wrong:
        hint = did_you_mean(wrong[0], [*known, *OTHERS])
        raise UserError(f"there is no table {wrong[0]}. {hint} Tables: {', '.join(known)}.")
    chosen = [known[name] for name in dict.fromkeys(names) if name in known]
    others = set(OTHERS) & set(names)
    alone = others & {NESTED, GRIDS}
    return chosen if chosen or alone else list(known.values()), others


def _read_sweeps(arguments: argparse.Namespace, scratch: Path) -> list[NestedSweep]:
    """Those under protocol=nested, from where the runs come from."""
    if arguments.store is not None:
        from lpgnn_cli.tracking.store import existing_uri

        return sweeps_in_store(existing_uri(arguments.store or None), scratch)
    results = Path(arguments.results) if arguments.results else default_results()
    if arguments.runs is None and results is not None:
        return read_sweeps(results)
    return sweeps_in_folders(Path(arguments.runs) if arguments.runs else runs_root())


def _read_grids(arguments: argparse.Namespace) -> list[GridSweep]:
    """Those over the paper's grids, from where the runs come from."""
    if arguments.store is not None:
        return []
    results = Path(arguments.results) if arguments.results else default_results()
    if arguments.runs is None and results is not None:
        return read_grids(results)
    return grids_in_folders(Path(arguments.runs) if arguments.runs else runs_root())


def _read(
    arguments: argparse.Namespace, scratch: Path
) -> tuple[list[PresetRun], str, dict[str, str]]:
    """The runs, where they come from, and what was written about them."""
    if arguments.store is not None:
        from lpgnn_cli.tracking.store import existing_uri

        uri = existing_uri(arguments.store or None)
        return runs_in_store(uri, scratch), f"MLflow at {uri}", {}
    if arguments.runs is None:
        results = Path(arguments.results) if arguments.results else default_results()
        if arguments.results and not _has_results(Path(arguments.results)):
            raise UserError(
                f"{arguments.results} holds no collected results: `lpgnn report collect --output "
                f"{arguments.results}` makes them of finished runs."
            )
        if results is not None:
            runs = read_results(results)
            return runs, f"the collected results in {results}", read_notes(results)
    root = Path(arguments.runs) if arguments.runs else runs_root()
    if arguments.runs and not root.is_dir():
        raise UserError(f"{root} is not a folder: --runs wants the root of run folders.")
    return runs_in_folders(root), f"the run folders in {root.name}/", {}


def _render(report: Report, findings: Sequence[Findings], form: str, scratch: Path) -> str:
    from lpgnn_cli.paper.render import latex, markdown

    if form == "markdown":
        return markdown(report)
    if form == "latex":
        return latex(report)
    from lpgnn_cli.paper.figures import draw_figures
    from lpgnn_cli.paper.html import html

    figures = draw_figures(findings, scratch / "figures")
    figures |= draw_reach(findings, scratch / "figures")
    for section in report.sections:
        section.figures = figures.get(section.id, [])
    return html(report)


def _print(report: Report, output: Path | None) -> int:
    from lpgnn_cli.paper.render import print_report

    if output is None:
        print_report(report, plain_console())
        return 0
    with _open_folder(output).open("w", encoding="utf-8") as file:
        print_report(report, plain_console(file=file, width=120))
    return 0


def _deliver(text: str, output: Path | None) -> int:
    if output is None:
        print(text, end="")
    else:
        write_atomically(_open_folder(output), text)
    return 0


def _open_folder(path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path.parent} cannot be made ({error.strerror}).") from error
    return path


def _has_results(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (RUNS, KEPT, KEPT_GRIDS))


def _plan(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if rest or arguments.output or arguments.format not in (None, COMMANDS):
        raise UserError(f"plan takes only --runs, --results, --store and --format {COMMANDS}.")
    with tempfile.TemporaryDirectory(prefix="lpgnn-report-") as scratch:
        runs, source, _ = _read(arguments, Path(scratch))
        sweeps = _read_sweeps(arguments, Path(scratch))
    if arguments.format == COMMANDS:
        print("\n".join(commands(missing_runs(runs), missing_sweeps(sweeps))))
        return 0
    planned = plan(runs, sweeps, _rates(arguments, runs, sweeps))
    for one in planned:
        print(f"{_estimate_text(one.estimate):>10}  {one.command}")
    if any(one.estimate and one.estimate.rough for one in planned):
        print(f"\n{ROUGH}")
    whole = len(missing_runs(runs))
    lacking = f"{count(whole, 'run')} and {count(len(planned) - whole, 'nested sweep')}"
    seconds = math.fsum(one.estimate.seconds for one in planned if one.estimate)
    total = f"about {duration(seconds)} of computing" if seconds else "nothing tells how long"
    on_cores = f", {duration(seconds / cores())} on {count(cores(), 'core')}" if seconds else ""
    print(f"\nBeside {source}, the tables lack {lacking}: {total}{on_cores}.")
    return 0


def _rates(
    arguments: argparse.Namespace, runs: Sequence[PresetRun], sweeps: Sequence[NestedSweep]
) -> Rates:
    """The pace of these, and of what was collected where the plan goes by something else."""
    results = default_results()
    if results is None or (arguments.runs is None and arguments.store is None):
        return Rates(runs, sweeps)
    return Rates([*runs, *read_results(results)], [*sweeps, *read_sweeps(results)])


def _estimate_text(estimate: Estimate | None) -> str:
    if estimate is None:
        return "unknown"
    return ("~" if estimate.rough else "") + duration(estimate.seconds)


def _collect(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if rest or arguments.format or arguments.results or arguments.store is not None:
        raise UserError("collect takes only --runs ROOT and --output FOLDER.")
    root = Path(arguments.runs) if arguments.runs else runs_root()
    results = Path(arguments.output or "results")
    collected = collect_runs(runs_in_folders(root), results)
    collected += collect_sweeps(sweeps_in_folders(root), results)
    collected += collect_grids(grids_in_folders(root), results)
    if not collected and not _has_results(results):
        raise UserError(
            f"{root} has no finished run of a preset: start one, such as "
            "`lpgnn train experiment=karate`."
        )
    write_results(results)
    print(f"Collected {', '.join(collected)} into {results}." if collected else "Nothing new.")
    return 0
