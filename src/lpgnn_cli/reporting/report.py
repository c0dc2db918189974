"""`report.md` of a run folder: the closing table and the pictures, for people and for MLflow."""

from __future__ import annotations

import time

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.reporting.train_table import closing_text
from lpgnn_cli.runfolder import RunFolder


def write_report(run: RunFolder) -> None:
    """After summary and figures are written."""
    record = run.read_record()
    table = closing_text(run, (record.ended or time.time()) - record.started)
    title, _, rest = table.partition("\n")
    # The figures first: a page may show the first lines alone.
    rest = "\n\n".join(reversed(rest.strip().split("\n\n")))
    pictures = [
        f"![{path.stem}](figures/{path.name})" for path in sorted(run.figures.glob("*.png"))
    ]
    text = "\n\n".join([f"# {title}", f"```\n{rest}\n```", *pictures])
    write_atomically(run.path / "report.md", f"{text}\n")
