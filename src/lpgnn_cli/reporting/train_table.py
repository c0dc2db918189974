"""The closing table: what came out, how honest each number is, and what to do next."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lpgnn_cli.formatting import (
    compact,
    count,
    duration,
    metric_mean_std,
    metric_text,
    one_line,
    per_cent,
)
from lpgnn_cli.metrics import (
    CONVERGED,
    EQUAL_ANSWERS,
    GAIN,
    GAIN_LARGEST,
    METRICS,
    MULTIPLIER_MEMORY,
    PATH_FREE,
    REACH,
    STEPS,
    TRANSITIONS,
    TRANSITIONS_BACKWARD,
    Metric,
    leading_on,
)
from lpgnn_cli.reporting.summary import FoldRow, fold_rows
from lpgnn_cli.reporting.text import describe, is_screen, write_plain
from lpgnn_cli.reporting.units import NOT_RUN, UnitData, read_units, scored_part
from lpgnn_cli.runfolder import (
    DIVERGED,
    FAILED,
    FINISHED,
    INTERRUPTED,
    Rule,
    RunFolder,
)
from lpgnn_cli.runsummary import RunSummary, Selection
from lpgnn_cli.settings import read_flat_config

MANY_UNITS = 20
ENDS_SHOWN = 5
LISTED_TROUBLES = 5
# Columns of a terminal in which the table can be spaced widely.
ROOMY = 90


@dataclass
class Closing:
    """The content, before it is drawn for a terminal or a log."""

    title: str
    header: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def closing_table(run: RunFolder, console: Console, elapsed: float) -> None:
    """Says what came out of a run; its summary must have been written."""
    closing = _compose(run, elapsed)
    if is_screen(console):
        _draw(closing, console)
    else:
        utf8 = (getattr(console.file, "encoding", None) or "utf-8").lower().startswith("utf")
        write_plain(console, _plain(closing) if utf8 else _plain(closing).replace("±", "+/-"))


def closing_text(run: RunFolder, elapsed: float) -> str:
    """The same as plain text; the first line says what ran."""
    return _plain(_compose(run, elapsed))


def _compose(run: RunFolder, elapsed: float) -> Closing:
    summary = RunSummary.read(run)
    units = read_units(run)
    part = scored_part(units)
    metric = summary.metric if summary.honest.metrics else _logged(units, part)
    rows = fold_rows(units, part, summary.best_epoch, metric)
    results = [u.result for u in units if u.result]
    closing = Closing(describe(run))
    closing.header, closing.rows = _table(rows, metric)
    closing.facts = _accuracies(summary) + _measures(summary, elapsed)
    stats = [r.inference for r in results if r.state == FINISHED]
    bound = read_flat_config(run.config_path).get("propagation.gain", "null")
    for label, text in (("test phase", _test_phase(stats)), ("gain", _gain(stats, bound))):
        closing.facts += [(label, text)] if text else []
    closing.warnings = _troubles(rows, summary) + _disagreement(summary) + _repelling(stats)
    closing.facts += _next_steps(run, rows)
    return closing


def _logged(units: Sequence[UnitData], part: str) -> Metric:
    """What units without a result are judged by."""
    return leading_on(part, {name for unit in units for name in unit.columns})


def _accuracies(summary: RunSummary) -> list[tuple[str, str]]:
    """*The* accuracy, or whatever the metric is, first; then the others, each with what it is."""
    metric = summary.metric.name
    states = "" if summary.path_free else ", persistent states"
    shown: list[tuple[str, Selection, str]] = []
    if summary.all_supervised:
        last = f"from zero, {summary.honest.rule}"
        shown.append((str(Rule.LAST_EPOCH), summary.honest, last))
        best, again = "best epoch", "best epoch, from zero"
        maximum = Selection(Rule.BEST_OWN_EPOCH)
        chosen = f"at epoch {summary.best_epoch}{states}"
    else:
        shown.append((f"{summary.honest.rule} (honest)", summary.honest, "from zero"))
        best, again = "best epoch (optimistic)", "from zero (optimistic)"
        maximum = summary.per_fold_maximum
        chosen = f"at epoch {summary.best_epoch}, chosen on the test part{states}"
    shown += [
        ("persistent states", summary.persistent, "as training left them, same epoch"),
        (best, summary.optimistic, chosen),
        (again, summary.best_from_zero, f"at epoch {summary.best_epoch}, scored again"),
        ("per-fold maximum (optimistic)", maximum, f"each unit at its own best epoch{states}"),
    ]
    facts = [
        (label, f"{_over_units(summary, selection, metric)}  {what}")
        for label, selection, what in shown
        if metric in selection.metrics
    ]
    if not summary.path_free and not summary.best_from_zero.metrics:
        facts.append((again, "not scored: the weights of all epochs were not kept (rescore_mb)"))
    return facts


def _disagreement(summary: RunSummary) -> list[str]:
    """States of training that promise another accuracy than a user will find."""
    if not summary.states_disagree:
        return []
    apart = 100 * summary.from_zero_minus_persistent
    return [
        f"from zero the {summary.metric.title} is {abs(apart):.1f} percentage points "
        f"{'lower' if apart < 0 else 'higher'} than at the states of training: these lag behind "
        "the weights or are another fixed point of theirs, and only the "
        f"{summary.metric.title} from zero is that of unseen graphs."
    ]


def _over_units(summary: RunSummary, selection: Selection, metric: str) -> str:
    value = selection.metrics[metric]
    return metric_mean_std(metric, value.mean, value.std, summary.units_finished)


def _measures(summary: RunSummary, elapsed: float) -> list[tuple[str, str]]:
    facts = []
    metric = summary.metric
    if metric.name in summary.train and not summary.all_supervised:
        trained = metric_text(metric.name, summary.train[metric.name])
        facts.append((f"train {metric.title}", trained))
    for name in summary.honest.metrics:
        if name != metric.name:
            facts.append((METRICS[name].title, _over_units(summary, summary.honest, name)))
    violation = [f"{compact(value)} {part}" for part, value in summary.violation.items()]
    if violation:
        facts.append(("violation", ", ".join(violation)))
    if TRANSITIONS.name in summary.train:
        back = summary.train[TRANSITIONS_BACKWARD.name]
        forth = summary.train[TRANSITIONS.name] - back
        facts.append(("f_a per epoch", f"{compact(forth)} forward, {compact(back)} backward"))
    if MULTIPLIER_MEMORY.name in summary.train:
        memory = compact(summary.train[MULTIPLIER_MEMORY.name])
        facts.append(("multipliers", f"{memory} MB per unit, for all ages"))
    facts.append(("time", f"{duration(elapsed)} ({duration(summary.seconds)} of computing)"))
    return facts


def _having(stats: Sequence[Mapping[str, float]], *metrics: Metric) -> list[tuple[float, ...]]:
    """The values of the units that have all of these."""
    names = [metric.name for metric in metrics]
    return [tuple(s[n] for n in names) for s in stats if all(n in s for n in names)]


def _means(values: Sequence[tuple[float, ...]]) -> list[float]:
    return [sum(side) / len(values) for side in zip(*values, strict=True)]


def _test_phase(stats: Sequence[Mapping[str, float]]) -> str:
    """How the test phase from zero went."""
    found = []
    if settled := _having(stats, CONVERGED, STEPS):
        share, steps = _means(settled)
        found.append(f"{per_cent(share, 0)} of the graphs settled in {steps:.0f} steps from zero")
    if agreed := _having(stats, EQUAL_ANSWERS):
        (share,) = _means(agreed)
        found.append(f"{per_cent(share)} of the answers as at the states of training")
    if reaches := _having(stats, REACH):
        found.append(f"labels count over {count(round(_means(reaches)[0]), 'hop')}")
    return "; ".join(found)


def _gain(stats: Sequence[Mapping[str, float]], bound: str) -> str:
    """What was measured of the gain, and whether anything proves the bound that was asked for."""
    measured = _having(stats, GAIN, GAIN_LARGEST)
    if not measured:
        return ""
    mean, _ = _means(measured)
    text = f"{mean:.2f} on average, {max(most for _, most in measured):.2f} for the graph with most"
    if bound == "null":
        return text
    proved = any(free == 1 for (free,) in _having(stats, PATH_FREE))
    return f"{text}; {'proved' if proved else 'not proved'} to stay below {min(float(bound), 1):g}"


def _repelling(stats: Sequence[Mapping[str, float]]) -> list[str]:
    """A warning where fixed points repel; runs of before know the mean over the graphs alone."""
    gains = [s.get(GAIN_LARGEST.name, s[GAIN.name]) for s in stats if GAIN.name in s]
    high = [gain for gain in gains if gain > 1]
    if not high:
        return []
    where = "" if len(gains) == 1 else f" in {len(high)} of {len(gains)} units"
    return [
        f"fixed points repel{where}: the Jacobian's gain reaches {max(high):.2f}, above 1, "
        "so inference that starts elsewhere may not find these states."
    ]


def _troubles(rows: Sequence[FoldRow], summary: RunSummary) -> list[str]:
    bad = [r for r in rows if r.state != FINISHED]
    if not bad:
        return []
    lines = [f"{r.unit} {r.state}: {r.reason}" for r in bad if r.reason][:LISTED_TROUBLES]
    done = summary.units_finished
    counted = f"the means are over the other {done}" if done else "there is no result"
    return [f"{len(bad)} of {len(rows)} units did not finish: {counted}.", *map(one_line, lines)]


def _next_steps(run: RunFolder, rows: Sequence[FoldRow]) -> list[tuple[str, str]]:
    path = _short(run.path)
    facts = [("run", one_line(path))]
    if any(r.state == INTERRUPTED for r in rows):
        facts.append(("continue", f"lpgnn train {_override('resume', path)}"))
    if any(r.state == FINISHED for r in rows):
        facts.append(("evaluate", f"lpgnn eval {_override('run', path)}"))
    if read_flat_config(run.config_path).get("tracking.name", "none") != "none":
        facts.append(("dashboard", "lpgnn ui"))
    return facts


def _short(path: Path) -> str:
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _override(key: str, value: str) -> str:
    """A Hydra override that can be pasted into a shell."""
    if re.fullmatch(r"[\w./:+-]+", value):
        return f"{key}={value}"
    escaped = value.replace('"', '\\"')
    return shlex.quote(f'{key}="{escaped}"')


def _table(rows: Sequence[FoldRow], metric: Metric) -> tuple[list[str], list[list[str]]]:
    """One row per unit; many units are condensed by seed, or to the first and the last."""
    header = ["unit", metric.title, "persistent", "last", "best epoch", "train"]
    header += ["violation", "max", "epochs", "time", "state"]
    lines = [_cells(r.unit, [r], metric) for r in rows]
    seeds = list(dict.fromkeys(r.seed for r in rows))
    if len(rows) > MANY_UNITS and len(seeds) > 1:
        lines = [_cells(f"seed {s}", [r for r in rows if r.seed == s], metric) for s in seeds]
    if len(lines) > MANY_UNITS:
        skipped = len(lines) - 2 * ENDS_SHOWN
        gap = [f"({skipped} more)", *[""] * (len(header) - 1)]
        lines = [*lines[:ENDS_SHOWN], gap, *lines[-ENDS_SHOWN:]]
    finished = [r for r in rows if r.state == FINISHED]
    if len(rows) > 1 and finished:
        lines.append(_cells("mean", finished, metric))
    shown = [i for i in range(len(header)) if any(line[i] not in ("", "-") for line in lines)]
    return [header[i] for i in shown], [[line[i] for i in shown] for line in lines]


def _cells(name: str, rows: Sequence[FoldRow], metric: Metric) -> list[str]:
    def mean(attribute: str) -> float:
        values = [v for r in rows if math.isfinite(v := getattr(r, attribute))]
        return sum(values) / len(values) if values else math.nan

    def shown(value: float) -> str:
        return metric_text(metric.name, value)

    states = [r.state for r in rows]
    finished = states.count(FINISHED)
    state = states[0] if len(set(states)) == 1 else f"{finished}/{len(states)} {FINISHED}"
    return [
        one_line(name),
        shown(mean("figure")),
        shown(mean("persistent")),
        # Of a unit without a result, as far as it got.
        shown(mean("last") if not finished else math.nan),
        shown(mean("at_cv_best")),
        shown(mean("train")),
        compact(mean("violation_mean")),
        compact(mean("violation_max")),
        f"{mean('epochs'):.0f}",
        duration(mean("seconds")),
        state if name != "mean" else "",
    ]


def _draw(closing: Closing, console: Console) -> None:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0) if console.width >= ROOMY else 0,
    )
    for i, name in enumerate(closing.header):
        text = i == 0 or name == "state"
        table.add_column(name, justify="left" if text else "right", no_wrap=True)
    for cells in closing.rows:
        style = "bold" if cells[0] == "mean" else ""
        table.add_row(*(Text(c, style=_state_style(c)) for c in cells), style=style)
    console.print(Text(closing.title, style="bold"), table, sep="\n")
    width = max((len(label) for label, _ in closing.facts), default=0)
    for label, value in closing.facts:
        style = "bold" if "epoch" in label or "honest" in label else ""
        line = Text.assemble((label.ljust(width), "dim"), "  ", (value, style))
        # The terminal breaks long lines, so that a command can still be copied in one piece.
        console.print(line, soft_wrap=True)
    for warning in closing.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _state_style(cell: str) -> str:
    bad = cell in (DIVERGED, FAILED, INTERRUPTED, NOT_RUN) or cell.endswith(f" {FINISHED}")
    return "red" if bad else ""


def _plain(closing: Closing) -> str:
    lines = [closing.title, ""]
    if closing.rows:
        grid = [closing.header, *closing.rows]
        widths = [max(len(row[i]) for row in grid) for i in range(len(closing.header))]
        for row in grid:
            cells = [
                cell.ljust(width) if i in (0, len(row) - 1) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines.append("")
    width = max((len(label) for label, _ in closing.facts), default=0)
    lines += [f"{label.ljust(width)}  {value}" for label, value in closing.facts]
    lines += [f"warning: {warning}" for warning in closing.warnings]
    return "\n".join(lines)
