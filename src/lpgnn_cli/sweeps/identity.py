"""What a job computes, as a name: the same config, code and data have the same one, always."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from lpgnn_cli.config.effects import essential_values
from lpgnn_cli.config.registry import GROUPS
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data.caching import Stamp, load_dataset_once, stamp
from lpgnn_cli.version import __version__

# Packages whose code takes part in the result.
COMPUTING = ("data", "model", "ops", "propagation", "training")
UNAVAILABLE, GENERATED = "unavailable", "generated"

_data: dict[tuple[str, str | None, Stamp], str] = {}


def identify(config: TrainConfig) -> str:
    """sha256 of what makes the result."""
    parts = [essential_values(config), code_version(), data_version(config), *plugins(config)]
    content = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@cache
def code_version() -> str:
    """The version, and a digest of the code that computes: an edited source tree has another."""
    package = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for name in COMPUTING:
        for file in sorted((package / name).rglob("*.py")):
            digest.update(f"{file.relative_to(package)}\n".encode())
            digest.update(file.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:16]}"


def plugins(config: TrainConfig) -> list[str]:
    """A digest of the code of every plug-in that takes part."""
    chosen = [options.of(getattr(config, group)) for group, options in GROUPS.items()]
    return [_source_digest(option.implementation) for option in chosen if option.origin]


def _source_digest(implementation: Any) -> str:
    """Of the whole module, or of the definition alone where it was typed in a notebook."""
    for source in (sys.modules[implementation.__module__], implementation):
        with suppress(OSError, TypeError):
            return hashlib.sha256(inspect.getsource(source).encode()).hexdigest()
    return str(implementation.__qualname__)


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
