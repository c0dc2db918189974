"""A report as Markdown, LaTeX or on a terminal; HTML and CSV have places of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from lpgnn_cli.paper.document import NOT_RUN, TESTS, Report, Section
from lpgnn_cli.reporting.grid import Grid, print_grid


def grids(section: Section) -> Iterator[tuple[str, Grid]]:
    """The grids that have something to say, with their headings."""
    for heading, grid in (
        ("", section.overview),
        ("Measured cells", section.details),
        ("Paired comparisons", section.comparisons),
    ):
        if grid.rows:
            yield heading, grid


def print_report(report: Report, console: Console) -> None:
    console.print(Text(report.title, style="bold"))
    console.print(Text(f"Source: {report.source}."))
    for section in report.sections:
        console.print()
        console.print(Text(f"{section.title} (table={section.id})", style="bold"))
        for line in section.intro:
            console.print(Text(line, style="dim"))
        for heading, grid in grids(section):
            if heading:
                console.print(Text(f"\n{heading}", style="italic"))
            print_grid(grid, console, _style)
        for note in section.notes:
            console.print(Text(f"- {note}"))
    console.print()
    for line in legend_lines(report):
        console.print(Text(line, style="dim"))


def _style(cell: str) -> str:
    if cell.startswith(NOT_RUN):
        return "dim"
    return "yellow" if cell.endswith("falls short") else ""


def legend_lines(report: Report) -> list[str]:
    compared = any(section.comparisons.rows for section in report.sections)
    return [*report.legend, *([TESTS] if compared else [])]


def markdown(report: Report, folded: bool = False) -> str:
    """`folded`: everything but the first grid of a section opens by a click, as GitHub shows it."""
    lines = [f"# {report.title}", "", f"Source: {report.source}.", ""]
    for line in legend_lines(report):
        lines.append(f"- {line}")
    for section in report.sections:
        lines += ["", f"## {section.title}"]
        for line in section.intro:
            lines += ["", line]
        for heading, grid in grids(section):
            lines += ["", *_markdown_part(heading, _markdown_grid(grid), folded)]
        for figure in section.figures:
            lines += ["", f"![{figure.caption}]({figure.path.as_posix()})"]
        if section.notes:
            notes = [f"- {_escape_markdown(note)}" for note in section.notes]
            lines += ["", *_markdown_part("Notes" if folded else "", notes, folded)]
    return "\n".join(lines) + "\n"


def _markdown_part(heading: str, lines: Sequence[str], folded: bool) -> list[str]:
    if not heading:
        return [*lines]
    if not folded:
        return [f"**{heading}**", "", *lines]
    return [f"<details><summary>{heading}</summary>", "", *lines, "", "</details>"]


def _markdown_grid(grid: Grid) -> list[str]:
    rule = ["---" if i < grid.labels else "---:" for i in range(len(grid.header))]
    return [
        _markdown_row(grid.header),
        f"| {' | '.join(rule)} |",
        *[_markdown_row(row) for row in grid.rows],
    ]


def _markdown_row(row: Sequence[str]) -> str:
    return f"| {' | '.join(_escape_markdown(cell).replace(chr(10), '<br>') for cell in row)} |"


def _escape_markdown(text: str) -> str:
    for character in "|*_":
        text = text.replace(character, f"\\{character}")
    return text


def latex(report: Report) -> str:
    """One table environment per grid, with booktabs, to \\input into a paper."""
    lines = ["% \\usepackage{booktabs}", f"% {report.title}. Source: {report.source}."]
    for section in report.sections:
        for number, (heading, grid) in enumerate(grids(section)):
            caption = " ".join([f"{section.title}.", *([heading + "."] if heading else [])])
            if not heading:
                caption += " " + " ".join(section.intro)
            lines += ["", *_latex_grid(grid, caption, f"tab:{section.id}-{number}")]
        lines += [f"% {note}" for note in section.notes]
    return "\n".join(lines) + "\n"


def _latex_grid(grid: Grid, caption: str, label: str) -> list[str]:
    columns = "l" * grid.labels + "r" * (len(grid.header) - grid.labels)
    return [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_escape_latex(caption)}}}",
        f"\\label{{{label}}}",
        f"\\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        "\\toprule",
        _latex_row(grid.header),
        "\\midrule",
        *[_latex_row(row) for row in grid.rows],
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]


def _latex_row(row: Sequence[str]) -> str:
    return " & ".join(_escape_latex(cell.replace("\n", " ")) for cell in row) + " \\\\"


LATEX = {
    "\\": "\\textbackslash{}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    "\u00a0": "~",
    "°": "$^\\circ$",
    **{mark: f"$^{letter}$" for mark, letter in zip("ᵃᵇᶜᵈᵉᶠᵍʰ", "abcdefgh", strict=True)},
    "ε": "$\\varepsilon$",
    "<": "$<$",
    ">": "$>$",
}


def _escape_latex(text: str) -> str:
    escaped = "".join(LATEX.get(character, character) for character in text)
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", escaped)
