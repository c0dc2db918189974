"""How numbers, durations and words are written for people, and tables for programs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable

from lpgnn_cli.metrics import in_per_cent

# Less than this is printed as no difference at all.
VISIBLE = 0.05


def per_cent(fraction: float, digits: int = 1) -> str:
    return f"{100 * fraction:.{digits}f} %" if math.isfinite(fraction) else "-"


def mean_std(
    mean: float, std: float | None, number: Callable[[float], str] = "{:.1f}".format
) -> str:
    """84.9 ± 3.2; the mean alone where there is no std."""
    if not math.isfinite(mean):
        return "-"
    return number(mean) if std is None else f"{number(mean)} ± {number(std)}"


def compact(value: float) -> str:
    """Few characters for a number of any size: 0, 0.412, 12.3, 3.1e-3."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.3g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def metric_text(name: str, value: float) -> str:
    """A value of a stored metric: per cent for fractions, else a plain number."""
    return per_cent(value) if in_per_cent(name) else compact(value)


def metric_mean_std(name: str, mean: float, std: float, units: int) -> str:
    """A stored metric over units: 84.9 ± 3.2 %, or 0.412 ± 0.05; one unit alone has no spread."""
    if units < 2 or not math.isfinite(mean):
        return metric_text(name, mean)
    if in_per_cent(name):
        return f"{mean_std(100 * mean, 100 * std)} %"
    return mean_std(mean, std, compact)


def signed(value: float | None) -> str:
    """A difference: +1.2, -0.3, 0.0."""
    if value is None:
        return "-"
    return f"{abs(value):.1f}" if abs(value) < VISIBLE else f"{value:+.1f}"


def p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


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
