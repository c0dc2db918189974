"""`results/`: what is kept of the runs behind the tables, small enough for the repository.

README.md              the tables, as `lpgnn report paper --format markdown` prints them
cells.csv              every cell with its figures, run, command, versions and times
comparisons.csv        the paired tests
commands.sh            the commands that repeat the runs, with what each of them took
figures/               the pictures of README.md
notes.yaml             by preset, why a row falls short and what was tried; written by hand
runs/<preset>/         config.yaml, run.json, summary.json, folds.csv, curves.csv (thinned)
"""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

import yaml

from lpgnn_cli.config.effects import is_within, presentation
from lpgnn_cli.errors import UserError
from lpgnn_cli.paper.document import Findings, Picture, cells_csv, comparisons_csv, write_report
from lpgnn_cli.paper.figures import EMBEDDING, draw_pictures
from lpgnn_cli.paper.presets import config_digest
from lpgnn_cli.paper.render import markdown
from lpgnn_cli.paper.runs import PresetRun, newest_match
from lpgnn_cli.reporting.text import csv_text, duration
from lpgnn_cli.runfolder import RunRecord, write_atomically

CURVE_ROWS = 200
CURVE_METRICS = ("accuracy_mean", "violation_mean_mean", "loss_mean")


def collect_runs(runs: Sequence[PresetRun], results: Path) -> list[str]:
    """Copy what is kept of the newest run of each preset, unless `results` has a newer one."""
    collected = []
    for preset in sorted({run.preset for run in runs}):
        run = newest_match(runs, [preset])
        if run is not None and run.record.started > _started(results / "runs" / preset):
            _copy(run, results / "runs" / preset)
            collected.append(preset)
    return collected


def write_results(findings: Sequence[Findings], results: Path) -> None:
    """The tables, figures and commands for what `results/runs` holds."""
    pictures = draw_pictures(findings, results / "figures")
    report = write_report(findings, "the runs in `runs/`, beside this file", read_notes(results))
    for section in report.sections:
        section.pictures = [
            Picture(Path(os.path.relpath(picture.path, results)), picture.caption)
            for picture in pictures.get(section.id, [])
        ]
    write_atomically(results / "README.md", markdown(report))
    write_atomically(results / "cells.csv", cells_csv(findings))
    write_atomically(results / "comparisons.csv", comparisons_csv(findings))
    write_atomically(results / "commands.sh", _commands(findings))


def read_notes(results: Path) -> dict[str, str]:
    """`notes.yaml`: preset -> a sentence or two about a row that falls short."""
    path = results / "notes.yaml"
    if not path.is_file():
        return {}
    try:
        notes = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise UserError(f"{path} is not YAML: write `preset: a sentence` lines.") from error
    if not isinstance(notes, dict):
        raise UserError(f"{path} must have `preset: a sentence` lines.")
    return {str(preset): " ".join(str(text).split()) for preset, text in notes.items()}


def portable(record: RunRecord) -> RunRecord:
    """Without what only one machine understands."""
    local = {*presentation(), "hydra"}
    words = [word for word in record.argv if not is_within(_key(word), local)]
    return replace(record, argv=words, host="", pid=0, parent_run_id=None)


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+~").partition("/")[0]


def _started(folder: Path) -> float:
    try:
        return float(json.loads((folder / "run.json").read_text(encoding="utf-8"))["started"])
    except (OSError, ValueError, KeyError):
        return 0.0


def _copy(run: PresetRun, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    source = run.folder.path
    config = yaml.safe_load((source / "config.yaml").read_text(encoding="utf-8"))
    config["data"] = {"root": None}
    config["tracking"] = {"name": "none"}
    write_atomically(target / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    write_atomically(target / "run.json", json.dumps(asdict(portable(run.record)), indent=1) + "\n")
    for name in ("summary.json", "folds.csv"):
        shutil.copyfile(source / name, target / name)
    if (source / "curves.csv").is_file():
        write_atomically(target / "curves.csv", thin_curves(source / "curves.csv"))
    for name in EMBEDDING:
        if (run.folder.figures / name).is_file():
            (target / "figures").mkdir(exist_ok=True)
            shutil.copyfile(run.folder.figures / name, target / "figures" / name)


def thin_curves(path: Path) -> str:
    """Some evenly spaced epochs, the last one included, and the means of a few metrics."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [n for n in rows[0] if n == "epoch" or _is_kept(n)] if rows else ["epoch"]
    step = max(1, -(-len(rows) // CURVE_ROWS))
    chosen = rows[::step] + ([rows[-1]] if rows and (len(rows) - 1) % step else [])
    return csv_text(
        names, ([row["epoch"], *[f"{float(row[n]):.5g}" for n in names[1:]]] for row in chosen)
    )


def _is_kept(name: str) -> bool:
    part, _, metric = name.partition("/")
    return part in ("train", "val", "test") and metric in CURVE_METRICS


def _commands(findings: Sequence[Findings]) -> str:
    runs = {
        cell.measured.run.preset: cell.measured.run
        for one in findings
        for cell in one.cells
        if cell.measured
    }
    lines = [
        "#!/bin/sh",
        "# Repeats the runs behind the tables; each line is independent of the others.",
    ]
    for preset, run in runs.items():
        record = portable(run.record)
        seconds = float(run.summary.get("seconds", 0.0))
        day = datetime.fromtimestamp(record.started).strftime("%Y-%m-%d")
        commit = (record.git_commit or "")[:12]
        lines += [
            "",
            f"# {preset}: {day}, {duration(seconds)} of computing, lpgnn {record.version}"
            + (f" at {commit}" if commit else "")
            + f", settings {config_digest(preset)}, first seed {run.config['seed']},",
            f"# {record.device}, {record.segment_backend}, data "
            f"{record.dataset_fingerprint[:12]}, folds {record.split_fingerprint[:12]}"
            + "".join(f", {name} {version}" for name, version in record.versions.items()),
            shlex.join(["lpgnn", *record.argv]),
        ]
    return "\n".join(lines) + "\n"


def default_results() -> Path | None:
    """`results/` in the current folder, or in the repository that lpgnn runs from."""
    from lpgnn_cli.config.compose import conf_dir

    for folder in (Path("results"), conf_dir().parent / "results"):
        if (folder / "runs").is_dir():
            return Path(os.path.relpath(folder))
    return None
