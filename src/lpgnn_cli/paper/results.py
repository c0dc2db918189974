"""`results/`: what is kept of the runs behind the tables, small enough for the repository.

README.md     the tables with their figures
reach.md      the same of how far labels travel
nested.jsonl  one sweep under protocol=nested per line
grids.jsonl   one sweep over a grid of the paper per line
runs.jsonl    the settings that most runs share, then one run per line: preset, command, other
              settings, versions, times, and the values of every fold and seed, so that the tables
              and the paired tests can be made again
figures/      the pictures of README.md
notes.yaml    by preset, why a row falls short and what was tried; written by hand
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml

from lpgnn_cli.atomic import write_atomically
from lpgnn_cli.config.effects import essential_words
from lpgnn_cli.errors import UserError
from lpgnn_cli.paper.document import Figure, Report, find, write_report
from lpgnn_cli.paper.figures import draw_figures
from lpgnn_cli.paper.grids import grids_section, read_grids
from lpgnn_cli.paper.nested import read_sweeps
from lpgnn_cli.paper.nested_section import nested_section
from lpgnn_cli.paper.reach import draw_reach, reach_report
from lpgnn_cli.paper.reference import Preset, presets_by_name, reach_tables, reference_tables
from lpgnn_cli.paper.render import markdown
from lpgnn_cli.paper.runs import (
    Curve,
    PresetRun,
    newest_first,
    newest_match,
)
from lpgnn_cli.paper.shared import SHARED, factored, whole
from lpgnn_cli.reporting.scores import UnitScore, with_figures_of_today
from lpgnn_cli.runfolder import FINISHED, RunRecord
from lpgnn_cli.runsummary import RunSummary

RUNS = "runs.jsonl"
NOTES = "notes.yaml"
# The preset whose states are shown, and where.
EMBEDDED = Preset("karate")
EMBEDDING = Path("figures") / "karate.png"
CURVE_POINTS = 50
CURVE_DIGITS = 4


def read_results(results: Path) -> list[PresetRun]:
    """The runs that were collected, the newest first."""
    path = results / RUNS
    if not path.is_file():
        return []
    runs, shared = [], {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            plain = json.loads(line)
            if SHARED in plain:
                shared = plain[SHARED]
                continue
            run = _from_plain(whole(plain, shared), results)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"{path}, line {number} is not a collected run: restore the file, or delete it and "
                "collect again."
            ) from error
        runs += [run] if run else []
    return newest_first(runs)


def collect_runs(runs: Sequence[PresetRun], results: Path) -> list[str]:
    """Keep the newest run of each preset, unless `results` has a newer one; the names of those."""
    by_name = attrgetter("name")
    kept = {run.preset: run for run in read_results(results)}
    collected = []
    for preset in sorted({run.preset for run in runs}, key=by_name):
        run = newest_match(runs, [preset])
        if run is None or not _is_newer(run, kept.get(preset)):
            continue
        kept[preset] = run
        collected.append(preset.name)
        _copy_embedding(run, results)
    if collected:
        results.mkdir(parents=True, exist_ok=True)
        plain = [_to_plain(kept[preset]) for preset in sorted(kept, key=by_name)]
        lines = [json.dumps(one, separators=(",", ":")) + "\n" for one in factored(plain)]
        write_atomically(results / RUNS, "".join(lines))
    return collected


def write_results(results: Path) -> None:
    """The tables and figures of what has been collected."""
    runs, notes = read_results(results), read_notes(results)
    findings = find(list(reference_tables().values()), runs)
    reach = find(list(reach_tables().values()), runs)
    figures = draw_figures(findings, results / "figures")
    figures |= draw_reach(reach, results / "figures")
    for path in (results / "figures").glob("*.png"):
        _shrink(path)
    source = f"[{RUNS}]({RUNS}), one run per line with its command, settings and versions"
    report = write_report(findings, source, notes)
    if grids := read_grids(results):
        report.sections.append(grids_section(grids))
    if sweeps := read_sweeps(results):
        report.sections.append(nested_section(sweeps))
    _write(results / "README.md", report, figures)
    if any(cell.measured for one in reach for cell in one.cells):
        _write(results / "reach.md", reach_report(reach, source, notes), figures)


def _write(path: Path, report: Report, figures: Mapping[str, list[Figure]]) -> None:
    for section in report.sections:
        section.figures = [
            Figure(Path(os.path.relpath(figure.path, path.parent)), figure.caption)
            for figure in figures.get(section.id, [])
        ]
    write_atomically(path, markdown(report, folded=True))


def read_notes(results: Path) -> dict[str, str]:
    """`notes.yaml`: name of a preset -> a sentence or two about a row that falls short."""
    path = results / NOTES
    if not path.is_file():
        return {}
    try:
        notes = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not YAML: write `preset: a sentence` lines.") from error
    if not isinstance(notes, dict):
        raise UserError(f"{path} must have `preset: a sentence` lines.")
    return {str(preset): " ".join(str(text).split()) for preset, text in notes.items()}


def default_results() -> Path | None:
    """`results/` in the current folder, or in the repository that lpgnn runs from."""
    from lpgnn_cli.config.compose import conf_dir

    for folder in (Path("results"), conf_dir().parent / "results"):
        if (folder / RUNS).is_file():
            return Path(os.path.relpath(folder))
    return None


def _is_newer(run: PresetRun, kept: PresetRun | None) -> bool:
    if kept is None:
        return True
    # What is kept is written to the microsecond, which may be a little before.
    return run.record.id != kept.record.id and run.record.started > kept.record.started


def _copy_embedding(run: PresetRun, results: Path) -> None:
    still = [path for path in run.embeddings if path.suffix == EMBEDDING.suffix]
    if run.preset == EMBEDDED and still:
        (results / EMBEDDING).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(still[0], results / EMBEDDING)


def _shrink(path: Path) -> None:
    """Line drawings need no millions of colours: with a palette they take a third of the space."""
    from PIL import Image

    with Image.open(path) as image:
        if image.mode == "P":
            return
        small = image.convert("RGB").quantize(256)
    small.save(path, optimize=True)


def _to_plain(run: PresetRun) -> dict[str, Any]:
    """What is kept of a run, without what only one machine understands."""
    record = run.record
    names = [field.name for field in fields(UnitScore)]
    return {
        "preset": run.preset.experiment,
        "variant": run.preset.variant,
        "command": shlex.join(["lpgnn", *essential_words(record.argv)]),
        "id": record.id,
        "started": datetime.fromtimestamp(record.started, UTC).isoformat(),
        "version": record.version,
        "git_commit": record.git_commit,
        "versions": record.versions,
        "device": record.device,
        "segment_backend": record.segment_backend,
        "dataset": record.dataset,
        "dataset_fingerprint": record.dataset_fingerprint,
        "split_fingerprint": record.split_fingerprint,
        "settings": run.settings,
        "summary": run.summary.to_dict(),
        "units": {name: [_plain(getattr(unit, name)) for unit in run.units] for name in names},
        "violation": thin(run.violation),
    }


def _from_plain(plain: Mapping[str, Any], results: Path) -> PresetRun | None:
    """The run of a line, or None where there is no such preset any more."""
    preset = Preset(plain["preset"], plain["variant"])
    if preset.name not in presets_by_name():
        return None
    embedding = results / EMBEDDING
    summary = RunSummary.from_dict(plain["summary"])
    return PresetRun(
        preset=preset,
        place=" ".join(preset.overrides),
        record=RunRecord(
            id=plain["id"],
            command="train",
            name=preset.name,
            argv=shlex.split(plain["command"])[1:],
            version=plain["version"],
            started=datetime.fromisoformat(plain["started"]).timestamp(),
            state=FINISHED,
            git_commit=plain["git_commit"],
            device=plain["device"],
            segment_backend=plain["segment_backend"],
            dataset=plain["dataset"],
            dataset_fingerprint=plain["dataset_fingerprint"],
            split_fingerprint=plain["split_fingerprint"],
            versions=plain["versions"],
        ),
        settings=plain["settings"],
        summary=summary,
        units=tuple(with_figures_of_today(_units(plain["units"]), summary)),
        violation=tuple((epoch, value) for epoch, value in plain["violation"]),
        embeddings=(embedding,) if preset == EMBEDDED and embedding.is_file() else (),
    )


def _units(columns: Mapping[str, Sequence[Any]]) -> list[UnitScore]:
    rows = zip(*columns.values(), strict=True)
    known: list[list[Any]] = [
        [math.nan if value is None else value for value in row] for row in rows
    ]
    return [UnitScore(**dict(zip(columns, row, strict=True))) for row in known]


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def thin(curve: Curve) -> list[tuple[int, float]]:
    """Some evenly spaced epochs, the last one included; what is thin already stays as it is."""
    step = max(1, -(-(len(curve) - 1) // (CURVE_POINTS - 1)))
    chosen = list(curve[::step])
    if curve and chosen[-1] != curve[-1]:
        chosen.append(curve[-1])
    return [(epoch, float(f"{value:.{CURVE_DIGITS}g}")) for epoch, value in chosen]
