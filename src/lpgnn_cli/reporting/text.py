"""How numbers, durations and names are written for people."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from lpgnn_cli.runfolder import RunFolder


def per_cent(fraction: float, digits: int = 1) -> str:
    return f"{100 * fraction:.{digits}f} %" if math.isfinite(fraction) else "-"


def compact(value: float) -> str:
    """Few characters for a number of any size: 0, 0.412, 12.3, 3.1e-3."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def duration(seconds: float) -> str:
    """0.4 s, 12 s, 3:07, 1:02:03."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def one_line(text: str) -> str:
    """Without line breaks and control characters, whatever a name or a reason contains."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def read_config(run: RunFolder) -> DictConfig:
    """The composed config, unresolved; empty where the run has none."""
    if not run.config_path.is_file():
        return OmegaConf.create({})
    config = OmegaConf.load(run.config_path)
    return config if isinstance(config, DictConfig) else OmegaConf.create({})


def describe(run: RunFolder) -> str:
    """What ran, in one line: dataset, propagation, aggregator, G and K."""
    config, record = read_config(run), run.read_record()

    def chosen(path: str) -> str:
        return str(OmegaConf.select(config, path, default="") or "")

    parts = [chosen("dataset.name") or record.dataset or record.name]
    parts += [chosen("propagation.name"), chosen("aggregator.name")]
    if chosen("g.name") and chosen("propagation.name") == "lagrangian":
        parts.append(f"G = {chosen('g.name')}")
    if chosen("layers"):
        parts.append(f"K = {chosen('layers')}")
    return one_line(", ".join(part for part in parts if part))


def is_screen(console: Console) -> bool:
    """Whether cursor movements, colours and Unicode are welcome.

    `Console.is_terminal` alone is also true in a pipe under FORCE_COLOR, as some CI systems set it.
    """
    isatty = getattr(console.file, "isatty", None)
    return (
        isatty is not None
        and bool(isatty())
        and not console.is_dumb_terminal
        and console.encoding.lower().startswith("utf")
    )


def write_plain(console: Console, text: str) -> None:
    """Text as it is, for pipes and logs; what the encoding lacks becomes a question mark."""
    encoding = getattr(console.file, "encoding", None) or "utf-8"
    console.file.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    console.file.flush()
