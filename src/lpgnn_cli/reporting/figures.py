"""The figures of a run, drawn from its run folder alone."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lpgnn_cli.formatting import compact, metric_text, per_cent
from lpgnn_cli.metrics import (
    LOSS,
    MULTIPLIER_NORM,
    TEST,
    TRAIN,
    VAL,
    VIOLATION_MEAN,
    Metric,
    score_metrics,
)
from lpgnn_cli.reporting.embedding import draw_embedding
from lpgnn_cli.reporting.look import new_figure, save_figure, style
from lpgnn_cli.reporting.text import describe
from lpgnn_cli.reporting.units import Array, Curves, all_supervised, common_curves, read_units
from lpgnn_cli.runfolder import INFLUENCE, Rule, RunFolder
from lpgnn_cli.runsummary import RunSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

PART_COLOURS = {TRAIN: "C0", VAL: "C2", TEST: "C1"}
PART_NAMES = {TRAIN: "train", VAL: "validation", TEST: "test"}
# Of nodes that are all supervised.
VIEW_NAMES = {TRAIN: "as training steps see it", TEST: "evaluated"}


@dataclass(frozen=True)
class Predictions:
    """The predictions of all units, one entry per item."""

    target: NDArray[np.int64]
    predicted: NDArray[np.int64]
    violation: Array


def make_figures(run: RunFolder) -> list[Path]:
    """Draws every figure that the run has data for into `figures/`, and says which."""
    curves = common_curves(read_units(run))
    names = [unit.name for unit in run.read_record().units]
    predictions = read_predictions(run, names)
    residuals = read_residuals(run, names)
    of_parts = curves
    if all_supervised(run):
        of_parts = curves.without(TEST)
        residuals.pop(TEST, None)
    title = describe(run)
    run.figures.mkdir(exist_ok=True)
    with style():
        drawn = [
            save(draw_curves(curves, RunSummary.read(run), title), run, "curves"),
            save(draw_constraints(of_parts, title), run, "constraints"),
            save(draw_confusion(predictions, title), run, "confusion"),
            save(draw_residuals(predictions, residuals, title), run, "residuals"),
            save(draw_influence(read_influence(run, names), title), run, "influence"),
        ]
        return [path for path in drawn if path] + draw_embedding(run, names, title)


def save(figure: Figure | None, run: RunFolder, name: str) -> Path | None:
    if figure is None:
        return None
    path = run.figures / f"{name}.png"
    save_figure(figure, path)
    return path


def draw_curves(curves: Curves, summary: RunSummary, title: str) -> Figure | None:
    """The metrics of class scores and the loss over the epochs, with the band over units."""
    drawn = [
        metric
        for metric in (*score_metrics(), LOSS)
        if any(metric.on(part) in curves.values for part in metric.parts)
    ]
    if not drawn:
        return None
    figure = new_figure(5.2 * len(drawn), 4.2, title)
    panels = figure.subplots(1, len(drawn), squeeze=False)[0]
    for panel, metric in zip(panels, drawn, strict=True):
        _draw_parts(panel, curves, metric, VIEW_NAMES if summary.all_supervised else PART_NAMES)
        _mark_selected(panel, summary, metric)
        name = metric.title.capitalize()
        panel.set(xlabel="epoch", title=_over_units(name, curves, "± 1 std"))
        panel.set_ylabel(f"{metric.title} (%)" if metric.in_per_cent else metric.title)
        panel.legend(loc="best")
    return figure


def draw_constraints(curves: Curves, title: str) -> Figure | None:
    """Violation and multiplier norm of each layer."""
    quantities = {
        VIOLATION_MEAN: r"Violation $|x - f_a(x)|$",
        MULTIPLIER_NORM: r"Multiplier norm $|\lambda|$",
    }
    panels_wanted = [q for q in quantities if _layers(curves, TRAIN, q)]
    if not panels_wanted:
        return None
    figure = new_figure(5.2 * len(panels_wanted), 4.2, title)
    panels = figure.subplots(1, len(panels_wanted), squeeze=False)[0]
    for panel, quantity in zip(panels, panels_wanted, strict=True):
        for part, dashes in ((TRAIN, "-"), (TEST, "--")):
            lines = _layers(curves, part, quantity)
            for number, (label, line) in enumerate(lines.items()):
                colour = _layer_colour(number, len(lines))
                values = curves.values[line]
                name = part if len(lines) == 1 else f"{part}, {label}"
                _draw_positive(panel, curves.epochs, values, colour, dashes, name)
        if any(len(np.asarray(line.get_ydata())) for line in panel.lines):
            panel.set_yscale("log")
            _label_log_axis(panel.yaxis)
        panel.set(xlabel="epoch", ylabel=quantity.name.replace("_", " "))
        panel.set_title(_over_units(quantities[quantity], curves, "min to max"))
        panel.legend(loc="best")
    return figure


def draw_confusion(predictions: Predictions | None, title: str) -> Figure | None:
    """Counts of target against predicted class, coloured by the share of the target class."""
    if predictions is None:
        return None
    classes = int(max(predictions.target.max(), predictions.predicted.max())) + 1
    counts = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(counts, (predictions.target, predictions.predicted), 1)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = max(4.6, 1.2 + 0.62 * classes)
    figure = new_figure(size + 0.8, size, title)
    panel = figure.subplots()
    image = panel.imshow(100 * share, cmap="Blues", vmin=0, vmax=100)
    figure.colorbar(image, ax=panel, label="share of the target class (%)", shrink=0.85)
    small = classes > 12
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if share[row, column] > 0.55 else "black" if count else "0.6"
        text = f"{count}" if small or not count else f"{count}\n{per_cent(share[row, column], 0)}"
        panel.text(column, row, text, ha="center", va="center", color=colour, fontsize=9)
    right = per_cent(np.trace(counts) / counts.sum())
    panel.set(xticks=range(classes), yticks=range(classes), xlabel="predicted class")
    panel.set(ylabel="target class", title=f"{counts.sum()} predictions, {right} right")
    panel.grid(False)
    return figure


def draw_residuals(
    predictions: Predictions | None, residuals: dict[str, Array], title: str
) -> Figure | None:
    """How far items and single entries of the states are from x = f_a(x)."""
    panels_wanted: list[tuple[str, str, dict[str, tuple[Array, str]]]] = []
    # A network without constraints has violations of zero throughout.
    if predictions is not None and (predictions.violation > 0).any():
        right = predictions.target == predictions.predicted
        groups = {
            "right": (predictions.violation[right], "C0"),
            "wrong": (predictions.violation[~right], "C1"),
        }
        panels_wanted.append(("Violation of each prediction", r"mean $|x - f_a(x)|$", groups))
    if residuals:
        entries = {p: (values, PART_COLOURS[p]) for p, values in residuals.items()}
        panels_wanted.append(("Residual of each state entry", r"$|x - f_a(x)|$", entries))
    if not panels_wanted:
        return None
    figure = new_figure(5.2 * len(panels_wanted), 4.0, title)
    panels = figure.subplots(1, len(panels_wanted), squeeze=False)[0]
    for panel, (name, label, groups) in zip(panels, panels_wanted, strict=True):
        _draw_histogram(panel, groups)
        panel.set(title=name, xlabel=label)
        panel.legend(loc="upper left")
    return figure


def read_predictions(run: RunFolder, units: Sequence[str]) -> Predictions | None:
    rows = []
    for unit in units:
        path = run.unit(unit) / "predictions.csv"
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                rows += list(csv.DictReader(file))
    if not rows or "predicted" not in rows[0]:
        return None  # several labels or numbers, which are not right or wrong as a whole
    return Predictions(
        target=np.array([int(row["target"]) for row in rows]),
        predicted=np.array([int(row["predicted"]) for row in rows]),
        violation=np.array([float(row.get("violation") or "nan") for row in rows]),
    )


def read_residuals(run: RunFolder, units: Sequence[str]) -> dict[str, Array]:
    """|x - f_a(x)| of all units, entry by entry, for the training and the test part."""
    found: dict[str, list[Array]] = {TRAIN: [], TEST: []}
    for unit in units:
        path = run.unit(unit) / "residuals.npz"
        if path.is_file():
            with np.load(path, allow_pickle=False) as arrays:
                for part in found.keys() & set(arrays.files):
                    found[part].append(np.abs(arrays[part]).astype(np.float64).ravel())
    return {part: np.concatenate(a) for part, a in found.items() if sum(map(len, a))}


def read_influence(run: RunFolder, units: Sequence[str]) -> dict[str, Array]:
    """By unit, how much the label of a node counts at each number of hops."""
    found = {}
    for unit in units:
        path = run.unit(unit) / INFLUENCE
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                found[unit] = np.array([float(row["influence"]) for row in csv.DictReader(file)])
    return found


def draw_influence(influence: dict[str, Array], title: str) -> Figure | None:
    """What the scores of a node owe to the label of another, by the hops between them."""
    shown = {unit: values for unit, values in influence.items() if (values > 0).any()}
    if not shown:
        return None
    figure = new_figure(6.2, 4.2, title)
    panel = figure.subplots()
    for number, (unit, values) in enumerate(shown.items()):
        share = np.where(values > 0, values, np.nan) / max(values[:2].max(), 1e-300)
        panel.plot(range(len(share)), share, "o-", markersize=3, color=f"C{number}", label=unit)
    panel.axhline(0.01, color="0.45", linewidth=1, linestyle=":", label="1 %: the reach")
    panel.set_yscale("log")
    _label_log_axis(panel.yaxis)
    panel.set(xlabel="hops from u to v", ylabel="share of that at the start")
    panel.set_title(r"Influence $|\partial\,$scores$_v\,/\,\partial\,$label$_u|$")
    panel.legend(loc="best")
    return figure


def _draw_parts(panel: Axes, curves: Curves, metric: Metric, names: Mapping[str, str]) -> None:
    scale = 100 if metric.in_per_cent else 1
    for part in metric.parts:
        name = metric.on(part)
        if name not in curves.values:
            continue
        mean, std = scale * curves.mean(name), scale * curves.std(name)
        low, high = mean - std, mean + std
        if metric.in_per_cent:
            low, high = np.clip(low, 0, 100), np.clip(high, 0, 100)
        colour = PART_COLOURS[part]
        panel.plot(curves.epochs, mean, color=colour, label=names[part], **_dots(curves))
        if curves.num_units > 1:
            panel.fill_between(curves.epochs, low, high, color=colour, alpha=0.16, linewidth=0)


def _mark_selected(panel: Axes, summary: RunSummary, metric: Metric) -> None:
    """What the two rules of selection give, of the metrics that they are reported for: the star is
    on the curve of training, the line is the test phase from zero."""
    scale = 100 if metric.in_per_cent else 1
    epoch = summary.best_epoch
    if epoch is not None and metric.name in summary.optimistic.metrics:
        best = summary.optimistic.metrics[metric.name].mean
        panel.axvline(epoch, color="0.45", linewidth=1, linestyle=":")
        note = "" if summary.all_supervised else " (optimistic)"
        label = f"best epoch {epoch}: {metric_text(metric.name, best)}{note}"
        place = [epoch], [scale * best]
        panel.plot(*place, "*", color="black", markersize=11, label=label, zorder=5)
    if metric.name in summary.honest.metrics:
        honest = summary.honest.metrics[metric.name].mean
        rule, note = summary.honest.rule, " (honest)"
        if summary.all_supervised:
            rule, note = Rule.LAST_EPOCH, ""
        label = f"{rule}, from zero: {metric_text(metric.name, honest)}{note}"
        panel.axhline(scale * honest, color="black", linewidth=1, linestyle="--", label=label)


def _draw_positive(
    panel: Axes, epochs: Array, values: Array, colour: Any, dashes: str, label: str
) -> None:
    """Mean and range over units on a logarithmic axis, which has no place for zeros."""
    positive = np.where(values > 0, values, np.nan)
    seen = np.isfinite(positive).any(axis=0)
    if not seen.any():
        panel.plot([], [], color=colour, linestyle=dashes, label=f"{label} (zero)")
        return
    at, shown = epochs[seen], positive[:, seen]
    panel.plot(at, np.nanmean(shown, axis=0), color=colour, linestyle=dashes, label=label)
    if dashes == "-" and len(values) > 1:
        low, high = np.nanmin(shown, axis=0), np.nanmax(shown, axis=0)
        panel.fill_between(at, low, high, color=colour, alpha=0.13, linewidth=0)


def _draw_histogram(panel: Axes, groups: dict[str, tuple[Array, str]]) -> None:
    """Shares of each group over logarithmic bins; exact zeros are counted in the legend."""
    groups = {n: (v[np.isfinite(v)], colour) for n, (v, colour) in groups.items()}
    everything = np.concatenate([values for values, _ in groups.values()])
    positive = everything[everything > 0]
    low, high = _span(positive)
    count = int(np.clip(np.sqrt(len(positive)), 10, 40))
    bins = np.geomspace(low, high, count + 1)
    tallest = 0.0
    for name, (values, colour) in groups.items():
        if not len(values):
            continue
        zero = float(np.mean(values == 0))
        note = f", {per_cent(zero, 0)} zero" if zero else ""
        label = f"{name} ({len(values):,}): median {compact(float(np.median(values)))}{note}"
        shown = np.clip(values[values > 0], low, high)
        share = 100 * np.histogram(shown, bins)[0] / len(values)
        panel.stairs(share, bins, color=colour, alpha=0.25, fill=True)
        panel.stairs(share, bins, color=colour, linewidth=1.4, label=label)
        tallest = max(tallest, float(share.max()))
    panel.set_xscale("log")
    _label_log_axis(panel.xaxis)
    # Room for the legend above the bars.
    panel.set_ylim(0, 1.3 * max(tallest, 1))
    panel.set_ylabel("share (%)")


def _span(positive: Array) -> tuple[float, float]:
    """From the smallest to the largest value; the first bin also takes the last thousandth below,
    for a few entries that vanish by chance would stretch the axis over many decades."""
    if not len(positive):
        return 1e-8, 1.0
    low, high = float(np.quantile(positive, 0.001)), float(positive.max()) * 1.001
    return (low, high) if high > 3 * low else (low / 2, high * 2)


def _label_log_axis(axis: Axis) -> None:
    """Ticks at the decades, and between them where there are few.

    More of them, and labels in mathematical type, would take half of the time of all figures.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    if high < 1000 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _layers(curves: Curves, part: str, metric: Metric) -> dict[str, str]:
    """Label → logged name for each layer, or for all layers together where that is all there is."""
    by_layer = metric.by_layer(part, curves.values)
    if by_layer:
        return {f"layer {number}": name for number, name in enumerate(by_layer, 1)}
    return {"": metric.on(part)} if metric.on(part) in curves.values else {}


def _layer_colour(number: int, layers: int) -> Any:
    """The palette's colours for a few layers, a scale that keeps its order for many."""
    if layers <= 6:
        return f"C{number}"
    import matplotlib

    return matplotlib.colormaps["viridis"](number / layers)


def _over_units(name: str, curves: Curves, band: str) -> str:
    if curves.num_units < 2:
        return name
    return f"{name}: mean of {curves.num_units} units, band {band}"


def _dots(curves: Curves) -> dict[str, Any]:
    """A line of a single epoch would be invisible."""
    return {"marker": "o"} if len(curves.epochs) == 1 else {}
