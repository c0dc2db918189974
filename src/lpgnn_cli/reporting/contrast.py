"""What differs between runs, as grids and sentences; the first run is what others are held to."""

from __future__ import annotations

import csv
import math
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lpgnn_cli.config.effects import essence
from lpgnn_cli.formatting import compact, duration, metric_mean_std, metric_text, p_text, signed
from lpgnn_cli.metrics import TEST, TRAIN, Metric
from lpgnn_cli.reporting.grid import Grid
from lpgnn_cli.reporting.scores import UnitScore, read_scores
from lpgnn_cli.reporting.significance import PairedTest, UnitFigure, compare_units, why_unpaired
from lpgnn_cli.reporting.text import describe
from lpgnn_cli.runfolder import RunFolder, RunRecord
from lpgnn_cli.runsummary import RunSummary, Selection
from lpgnn_cli.settings import differing, read_flat_config

NOTHING = "-"
SHORT = 12
# Rows of the table of figures, and of the tests.
HONEST, BEST_EPOCH = "from zero (honest)", "best epoch, from zero (optimistic)"


@dataclass(frozen=True)
class Contrasted:
    """A run beside others, which its letter tells it from."""

    letter: str
    place: str
    folder: RunFolder

    @cached_property
    def title(self) -> str:
        return describe(self.folder)

    @cached_property
    def record(self) -> RunRecord:
        record = self.folder.read_record()
        record.state = self.folder.actual_state(record)
        return record

    @cached_property
    def settings(self) -> dict[str, str]:
        return read_flat_config(self.folder.config_path)

    @cached_property
    def summary(self) -> RunSummary:
        return RunSummary.read(self.folder)

    @property
    def metric(self) -> Metric:
        return self.summary.metric

    @cached_property
    def units(self) -> list[UnitScore]:
        """Those that have finished."""
        return [u for u in read_scores(self.folder, self.summary, 0, self.metric) if u.finished]

    @cached_property
    def curves(self) -> dict[str, list[float]]:
        """curves.csv by column."""
        path = self.folder.path / "curves.csv"
        if not path.is_file():
            return {}
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return {name: [float(row[name]) for row in rows] for name in rows[0]} if rows else {}


def contrast(runs: Sequence[tuple[str, RunFolder]]) -> Contrast:
    """Runs with the places that they are shown by."""
    letters = string.ascii_uppercase
    return Contrast([Contrasted(letters[i], *run) for i, run in enumerate(runs)])


@dataclass(frozen=True)
class Contrast:
    """Several runs, and what differs between them."""

    runs: Sequence[Contrasted]

    @property
    def header(self) -> list[str]:
        return [run.letter for run in self.runs]

    def settings(self) -> Grid:
        """Those that results depend on."""
        found = differing([essence(run.settings) for run in self.runs])
        rows = [[key, *(value or NOTHING for value in own)] for key, own in found.items()]
        return Grid(["setting", *self.header], rows, labels=1 + len(self.runs))

    def notes_on_settings(self) -> list[str]:
        """Settings that only some runs have, and those that change nothing of results."""
        essential = [essence(run.settings) for run in self.runs]
        notes = []
        for run, own in zip(self.runs, essential, strict=True):
            others = [other for other in essential if other is not own]
            alone = [f"{k}={v}" for k, v in own.items() if not any(k in o for o in others)]
            if alone:
                notes.append(f"Only {run.letter} has {', '.join(alone)}.")
        shown = differing([run.settings for run in self.runs]).keys() - differing(essential).keys()
        if shown:
            names = ", ".join(sorted(shown))
            notes.append(f"Different as well, without effect on results: {names}.")
        return notes

    def circumstances(self) -> tuple[Grid, str]:
        """Code, data and machine: what differs as a grid, what does not in a sentence."""
        rows, same = [], []
        for name, value in FACTS.items():
            own = [value(run.record) or NOTHING for run in self.runs]
            if len(set(own)) > 1:
                rows.append([name, *own])
            elif own[0] != NOTHING:
                same.append(f"{name} {own[0]}")
        packages = [run.record.versions for run in self.runs]
        rows += [[key, *(v or NOTHING for v in own)] for key, own in differing(packages).items()]
        sentence = f"The same: {', '.join(same)}." if same else ""
        return Grid(["", *self.header], rows, labels=1 + len(self.runs)), sentence

    def figures(self) -> Grid:
        """What the runs report, in the metric that each is judged by."""
        rows = [[name, *(text(run) for run in self.runs)] for name, text in FIGURES.items()]
        if len({run.metric.name for run in self.runs}) > 1:
            rows.insert(0, ["judged by", *(run.metric.title for run in self.runs)])
        shown = [row for row in rows if any(cell != NOTHING for cell in row[1:])]
        title = self.runs[0].metric.title
        return Grid([title, *self.header], shown)

    def tests(self) -> Grid:
        """Every other run minus the first, over the folds that both have."""
        first = self.runs[0]
        unit = "percentage points" if first.metric.in_per_cent else "difference"
        header = ["", "figure", "pairs", unit, "p", "p corrected"]
        rows = []
        for other in self.runs[1:]:
            name = f"{other.letter} minus {first.letter}"
            reason, tests = paired_tests(other, first)
            rows += [[name, figure, *_test_text(test, first)] for figure, test in tests.items()]
            rows += [[name, reason, *[NOTHING] * 4]] if reason else []
        return Grid(header, rows, labels=2)


def paired_tests(one: Contrasted, other: Contrasted) -> tuple[str, dict[str, PairedTest]]:
    """Why there is none, or the tests by figure."""
    if one.metric is not other.metric:
        return "judged by other metrics: not paired", {}
    if reason := why_unpaired(one.record, other.record):
        return reason, {}
    protocol = one.settings.get("protocol.name", "")
    of_figure: dict[str, Callable[[UnitScore], float]] = {
        HONEST: lambda unit: unit.honest,
        BEST_EPOCH: lambda unit: unit.best_epoch_from_zero,
    }
    tests = {}
    for name, value in of_figure.items():
        test = compare_units(_figures(one, value), _figures(other, value), protocol)
        if test is not None:
            tests[name] = test
    return ("" if tests else "fewer than two pairs: no test"), tests


def _figures(run: Contrasted, value: Callable[[UnitScore], float]) -> list[UnitFigure]:
    scale = 100 if run.metric.in_per_cent else 1
    return [UnitFigure(u.unit, u.fold, u.seed, scale * value(u)) for u in run.units]


def _test_text(test: PairedTest, run: Contrasted) -> list[str]:
    if run.metric.in_per_cent:
        difference = signed(test.difference)
    else:
        difference = ("+" if test.difference > 0 else "") + compact(test.difference)
    return [str(test.pairs), difference, p_text(test.p_flips), p_text(test.p_corrected)]


FACTS: dict[str, Callable[[RunRecord], str]] = {
    "state": lambda record: record.state,
    "version": lambda record: record.version,
    "commit": lambda record: (record.git_commit or "")[:SHORT],
    "dataset": lambda record: record.dataset,
    "data": lambda record: record.dataset_fingerprint[:SHORT],
    "folds": lambda record: record.split_fingerprint[:SHORT],
    "device": lambda record: record.device,
    "segment sums": lambda record: record.segment_backend,
}


def _mean_std(of: Callable[[RunSummary], Selection]) -> Callable[[Contrasted], str]:
    def text(run: Contrasted) -> str:
        figure = of(run.summary).figure
        name, units = run.metric.name, run.summary.units_finished
        return metric_mean_std(name, figure.mean, figure.std, units)

    return text


def _best_from_zero(summary: RunSummary) -> Selection:
    return summary.optimistic if summary.path_free else summary.best_from_zero


def _train(run: Contrasted) -> str:
    return metric_text(run.metric.name, run.summary.train.get(run.metric.name, math.nan))


def _violation(run: Contrasted) -> str:
    of_parts = [run.summary.violation[p] for p in (TEST, TRAIN) if p in run.summary.violation]
    return compact(of_parts[0]) if of_parts else NOTHING


def _units(run: Contrasted) -> str:
    summary = run.summary
    if summary.units == summary.units_finished:
        return str(summary.units or NOTHING)
    return f"{summary.units_finished} of {summary.units}"


FIGURES: dict[str, Callable[[Contrasted], str]] = {
    HONEST: _mean_std(lambda summary: summary.honest),
    "persistent states": _mean_std(lambda summary: summary.persistent),
    BEST_EPOCH: _mean_std(_best_from_zero),
    "per-fold maximum (optimistic)": _mean_std(lambda summary: summary.per_fold_maximum),
    "training part": _train,
    "violation": _violation,
    "units": _units,
    "epoch selected": lambda run: compact(run.summary.honest.epoch),
    "time of computing": lambda run: duration(run.summary.seconds or math.nan),
}
