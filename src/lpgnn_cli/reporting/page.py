"""Pages of HTML that need nothing beside themselves."""

from __future__ import annotations

import base64
from collections.abc import Callable
from html import escape

from lpgnn_cli.reporting.grid import RUN, Grid

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


def page(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{body}
</body>
</html>
"""


def grid_html(grid: Grid, cell: Callable[[str], str] = escape) -> str:
    def kind(position: int) -> str:
        if grid.header[position] == RUN:
            return ' class="path"'
        return "" if grid.is_words(position) else ' class="number"'

    head = "".join(f"<th{kind(i)}>{escape(t)}</th>" for i, t in enumerate(grid.header))
    rows = [
        "<tr>" + "".join(f"<td{kind(i)}>{cell(t)}</td>" for i, t in enumerate(row)) + "</tr>"
        for row in grid.rows
    ]
    body = "\n".join(rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n{body}</table></div>'


def picture_html(data: bytes, kind: str, caption: str) -> str:
    """A picture inside the page; `kind` is png or gif."""
    text, encoded = escape(caption), base64.b64encode(data).decode("ascii")
    return (
        f'<figure><img alt="{text}" src="data:image/{kind};base64,{encoded}">'
        f"<figcaption>{text}</figcaption></figure>"
    )
