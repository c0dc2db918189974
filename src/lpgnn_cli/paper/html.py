"""A report as one page that needs nothing beside itself."""

from __future__ import annotations

import base64
from html import escape

from lpgnn_cli.paper.document import NOT_RUN, RUN, Figure, Grid, Report, Section
from lpgnn_cli.paper.render import grids, legend_lines

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; margin: 0 auto; max-width: 76rem;
  padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .3rem; padding-top: 1rem; border-top: 1px solid #ddd; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, li { max-width: 52rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
a { color: #0072b2; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th { text-align: left; border-bottom: 2px solid #333; vertical-align: bottom; }
th, td { padding: .25rem .7rem .25rem 0; }
td { border-bottom: 1px solid #e5e5e5; vertical-align: top; white-space: nowrap; }
.number { text-align: right; }
.path { padding-right: 0; font-size: .8rem; white-space: normal; overflow-wrap: anywhere;
  min-width: 11rem; }
.paper { color: #666; font-size: .8rem; }
.absent { color: #999; }
.short { color: #a63c00; }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; }
figcaption, .intro, .legend { color: #555; }
@media print { nav { display: none; } h2 { break-before: page; } }
"""


def html(report: Report) -> str:
    links = "".join(f'<a href="#{s.id}">{escape(_short(s.title))}</a>' for s in report.sections)
    legend = "".join(f"<li>{escape(line)}</li>" for line in legend_lines(report))
    sections = "\n".join(_section(section) for section in report.sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(report.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(report.title)}</h1>
<p>Source: {escape(report.source)}.</p>
<nav>{links}</nav>
<ul class="legend">{legend}</ul>
{sections}
</body>
</html>
"""


def _short(title: str) -> str:
    return title.split(":")[0].split(",")[0]


def _section(section: Section) -> str:
    parts = [f'<h2 id="{section.id}">{escape(section.title)}</h2>']
    parts += [f'<p class="intro">{escape(line)}</p>' for line in section.intro]
    for heading, grid in grids(section):
        parts += [f"<h3>{escape(heading)}</h3>"] if heading else []
        parts.append(_grid(grid))
    if section.notes:
        notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
        parts.append(f"<ul>{notes}</ul>")
    parts += [_figure(figure) for figure in section.figures]
    return "\n".join(parts)


def _grid(grid: Grid) -> str:
    def number(position: int) -> str:
        if grid.header[position] == RUN:
            return ' class="path"'
        return "" if position < grid.labels else ' class="number"'

    head = "".join(f"<th{number(i)}>{escape(t)}</th>" for i, t in enumerate(grid.header))
    rows = [
        "<tr>" + "".join(f"<td{number(i)}>{_cell(t)}</td>" for i, t in enumerate(row)) + "</tr>"
        for row in grid.rows
    ]
    body = "\n".join(rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n{body}</table></div>'


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
    data = base64.b64encode(figure.path.read_bytes()).decode("ascii")
    caption = escape(figure.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/{kind};base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )
