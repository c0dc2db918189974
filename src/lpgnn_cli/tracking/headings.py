"""What MLflow's tables and pages show of a run at first sight: name, data, description."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lpgnn_cli.runfolder import RunFolder, RunRecord
from lpgnn_cli.settings import uses_g
from lpgnn_cli.stored import read_json
from lpgnn_cli.tracking.sender import DIGEST_LENGTH, DataInput

# The name of the run as its folder has it.
NAME_TAG = "name"
NOTE_TAG = "mlflow.note.content"
# The first that is there is the description of the run.
NOTES = ("report.md", "leaderboard.md")
SHORT = {"lagrangian": "lp", "fixed_point": "fp", "layers": "ff", "diffusion": "diff"}


def run_name(record: RunRecord, settings: Mapping[str, str]) -> str:
    """The name that was given, or one whose first 15 letters, which tables show, tell runs apart.

    It begins as the id of the run does, since what differs may be any setting.
    """
    if record.command != "train" or settings.get("name", "null") != "null":
        return record.name
    chosen = [settings.get(f"{group}.name", "") for group in ("propagation", "aggregator")]
    words = [record.id[:4], *(SHORT.get(name, name) for name in chosen)]
    words += [f"k{settings.get('layers', '')}", record.dataset]
    words += [settings.get("g.name", "")] if uses_g(settings) else []
    return "-".join(word for word in words if word).lower()


def data_inputs(run: RunFolder, record: RunRecord, settings: Mapping[str, str]) -> list[DataInput]:
    """The dataset, and how it is split, each with our fingerprint; none of what reads no data."""
    if not record.dataset or not record.dataset_fingerprint:
        return []
    described = read_json(run.data_path) if run.data_path.is_file() else {}
    described.pop("example", None)
    data = _input(
        record.dataset, record.dataset_fingerprint, "data", _group(settings, "dataset"), described
    )
    if not record.split_fingerprint:
        return [data]
    protocol = settings.get("protocol.name", "splits")
    source = {**_group(settings, "protocol"), "seed": settings.get("seed", "")}
    count = {"units": len(record.units)}
    name = f"{record.dataset}-{protocol}"
    return [data, _input(name, record.split_fingerprint, "split", source, count)]


def read_note(run: RunFolder, run_id: str) -> str:
    """The description of a run, whose pictures the server has among its artifacts."""
    for name in NOTES:
        path = run.path / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            where = rf"](get-artifact?run_uuid={run_id}&path=figures/\1)"
            return re.sub(r"\]\(figures/([\w.-]+)\)", where, text)
    return ""


def _group(settings: Mapping[str, str], group: str) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key.startswith(f"{group}.")}


def _input(
    name: str, fingerprint: str, context: str, source: Mapping[str, Any], profile: Mapping[str, Any]
) -> DataInput:
    profile = {**profile, "fingerprint": fingerprint}
    digest = fingerprint[:DIGEST_LENGTH]
    return DataInput(name, digest, context, json.dumps(source), json.dumps(profile))
