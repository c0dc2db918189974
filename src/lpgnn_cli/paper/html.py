"""A report as one page that needs nothing beside itself."""

from __future__ import annotations

from html import escape

from lpgnn_cli.paper.document import NOT_RUN, Figure, Report, Section
from lpgnn_cli.paper.render import grids, legend_lines
from lpgnn_cli.reporting.page import grid_html, page, picture_html


def html(report: Report) -> str:
    links = "".join(f'<a href="#{s.id}">{escape(_short(s.title))}</a>' for s in report.sections)
    legend = "".join(f"<li>{escape(line)}</li>" for line in legend_lines(report))
    sections = "\n".join(_section(section) for section in report.sections)
    return page(
        report.title,
        f"""<p>Source: {escape(report.source)}.</p>
<nav>{links}</nav>
<ul class="legend">{legend}</ul>
{sections}""",
    )


def _short(title: str) -> str:
    return title.split(":")[0].split(",")[0]


def _section(section: Section) -> str:
    parts = [f'<h2 id="{section.id}">{escape(section.title)}</h2>']
    parts += [f'<p class="intro">{escape(line)}</p>' for line in section.intro]
    for heading, grid in grids(section):
        parts += [f"<h3>{escape(heading)}</h3>"] if heading else []
        parts.append(grid_html(grid, _cell))
    if section.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
        parts.append(f"<ul>{notes}</ul>")
    parts += [_figure(figure) for figure in section.figures]
    return "\n".join(parts)


def _cell(text: str) -> str:
    first, _, second = text.partition("\n")
    if first == NOT_RUN:
        shown = f'<span class="absent">{NOT_RUN}</span>'
    elif first.endswith("falls short"):
        shown = f'<span class="short">{escape(first)}</span>'
    else:
        shown = escape(first)
    return f'{shown}<br><span class="paper">{escape(second)}</span>' if second else shown


def _figure(figure: Figure) -> str:
    kind = figure.path.suffix.removeprefix(".")
    return picture_html(figure.path.read_bytes(), kind, figure.caption)
