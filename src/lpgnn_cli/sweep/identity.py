"""What a job computes, as a name: the same config, code and data have the same one, always."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

import lpgnn_cli
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.caching import Stamp, load_dataset_once, stamp
from lpgnn_cli.version import __version__

# Settings that change how a run looks, where it is kept and how fast it is, not what it computes.
PRESENTATION = ("name", "quiet", "figures", "tracking", "resume", "threads", "checkpoint_every")
# Packages whose code takes part in the result.
COMPUTING = ("data", "model", "ops", "training")
UNAVAILABLE, GENERATED = "unavailable", "generated"

_data: dict[tuple[str, str | None, Stamp], str] = {}


def identify(config: TrainConfig) -> str:
    """sha256 of what makes the result."""
    plain = asdict(config)
    for name in (*PRESENTATION, "data", "sweep"):
        plain.pop(name, None)
    del plain["protocol"]["workers"]
    content = json.dumps([plain, code_version(), data_version(config)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@cache
def code_version() -> str:
    """The version, and a digest of the code that computes: an edited source tree has another."""
    package = Path(lpgnn_cli.__file__).parent
    digest = hashlib.sha256()
    for name in COMPUTING:
        for file in sorted((package / name).rglob("*.py")):
            digest.update(f"{file.relative_to(package)}\n".encode())
            digest.update(file.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:16]}"


def data_version(config: TrainConfig) -> str:
    """The dataset's fingerprint; graphs that are generated follow from config, seed and code."""
    key = (repr(config.dataset), config.data.root, stamp(config.dataset))
    if key not in _data:
        try:
            dataset = load_dataset_once(config.dataset, config.data.root, config.seed)
        except Exception:  # whatever it is, the job itself will meet it and tell
            return UNAVAILABLE
        _data[key] = GENERATED if dataset.seeded else dataset.fingerprint()
    return _data[key]
