"""`lpgnn doctor`: what is installed and in use, what is missing, and the command that fixes it."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from rich.console import Console
from rich.table import Table

from lpgnn_cli.errors import UserError
from lpgnn_cli.screen import plain_console
from lpgnn_cli.version import __version__

DISTRIBUTION = "lpgnn-cli"
SCATTER_FIX = "pip install --no-build-isolation torch-scatter   (builds for about 7 minutes)"


@dataclass(frozen=True)
class Finding:
    """One line of the screen; `fix` is the command for what is missing."""

    topic: str
    text: str
    fix: str | None = None
    fatal: bool = False


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="lpgnn doctor", description=__doc__.split(":", 1)[1])
    parser.parse_args(argv)
    findings = list(examine())
    _show(findings, plain_console())
    return 1 if any(finding.fatal for finding in findings) else 0


def examine() -> Iterator[Finding]:
    from lpgnn_cli.config.compose import conf_dir

    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding("lpgnn", f"{__version__} on {python}; settings from {conf_dir()}")
    yield from _packages()
    try:
        import torch
    except ImportError as error:
        yield Finding("torch", f"does not load: {error}", "pip install torch", fatal=True)
        return
    yield _device(torch.__version__)
    yield _segments()
    yield _arc_kernel()
    yield _allocator()
    yield _tracking()
    yield from _plugins()
    yield from _data()


def _packages() -> Iterator[Finding]:
    required = [_name(line) for line in requires(DISTRIBUTION) or [] if "extra ==" not in line]
    found = {name: _version(name) for name in sorted(required) if name != "torch"}
    installed = ", ".join(f"{name} {number}" for name, number in found.items() if number)
    yield Finding("packages", installed)
    missing = [name for name, number in found.items() if number is None]
    if missing:
        names = " ".join(missing)
        yield Finding("packages", f"missing: {names}", f"pip install {names}", fatal=True)


def _name(requirement: str) -> str:
    """`hydra-core` from `hydra-core<1.4,>=1.3.2`."""
    end = next((i for i, c in enumerate(requirement) if not (c.isalnum() or c in "-_.")), None)
    return requirement[:end]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _device(torch_version: str) -> Finding:
    import torch

    from lpgnn_cli.processes import cores
    from lpgnn_cli.training.device import resolve_device

    device = resolve_device("auto")
    if device.type == "cuda":
        what = f"cuda: {torch.cuda.get_device_name(device)} (CUDA {torch.version.cuda})"
    elif device.type == "mps":
        what = "mps: Metal"
    else:
        what = f"cpu, {cores()} cores; torch finds no CUDA or Metal device"
    return Finding("device", f"{what}; torch {torch_version}")


def _segments() -> Finding:
    from lpgnn_cli.ops import backend

    try:
        name, reason = backend()
    except UserError as error:
        return Finding("segment backend", str(error), "unset LPGNN_SEGMENT", fatal=True)
    scatter = _version("torch-scatter")
    installed = f"; torch-scatter {scatter}" if scatter else ""
    fix = SCATTER_FIX if scatter is None else None
    return Finding("segment backend", f"{name}: {reason}{installed}", fix)


def _arc_kernel() -> Finding:
    from lpgnn_cli.ops import arc_kernel

    try:
        name, reason = arc_kernel()
    except UserError as error:
        return Finding("arc kernel", str(error), "unset LPGNN_ARC_KERNEL", fatal=True)
    llvmlite = _version("llvmlite")
    installed = f"; llvmlite {llvmlite}" if llvmlite else ""
    fix = "pip install llvmlite" if llvmlite is None else None
    return Finding("arc kernel", f"{name}: {reason}{installed}", fix)


def _allocator() -> Finding:
    from lpgnn_cli.allocator import tune_allocator

    tuned = tune_allocator()
    return Finding(
        "memory",
        "training keeps large blocks in the heap (glibc)"
        if tuned
        else "the C library's own settings: it is not glibc",
    )


def _tracking() -> Finding:
    from lpgnn_cli.tracking.store import resolve_uri, sqlite_path

    uri = resolve_uri(None)
    source = "$MLFLOW_TRACKING_URI" if os.environ.get("MLFLOW_TRACKING_URI") else "the default"
    database = sqlite_path(uri)
    state = ""
    if database is not None:
        state = f", {'exists' if database.is_file() else 'made by the first run'}"
    return Finding("tracking store", f"{uri} ({source}{state})")


def _plugins() -> Iterator[Finding]:
    from lpgnn_cli.config.installed import load_plugins

    topic = "plug-ins"
    for plugin in load_plugins():
        fix = f"pip install --upgrade {plugin.package.split()[0]}" if plugin.problem else None
        brought = plugin.problem or f"brings {', '.join(plugin.options) or 'nothing'}"
        yield Finding(topic, f"{plugin.package}: {brought}", fix)
        topic = ""


def _data() -> Iterator[Finding]:
    from lpgnn_cli.data.catalogue import CATALOGUE
    from lpgnn_cli.data.sources import data_folder, find_on_disk
    from lpgnn_cli.data.storage import embedded_names

    folder = data_folder(None)
    source = "$LPGNN_DATA" if os.environ.get("LPGNN_DATA") else "the default; $LPGNN_DATA sets it"
    built_in, on_disk, absent = [], [], []
    for option, entry in CATALOGUE.items():
        if entry.tu_name is None or entry.tu_name in embedded_names():
            built_in.append(option)
        elif find_on_disk(entry.tu_name, folder) is not None:
            on_disk.append(option)
        else:
            absent.append(option)
    yield Finding("data folder", f"{folder} ({source})")
    yield Finding("datasets", f"built in: {', '.join(built_in)}")
    if on_disk:
        yield Finding("", f"on disk: {', '.join(on_disk)}")
    if absent:
        fix = f"lpgnn data prepare {' '.join(absent)}"
        yield Finding("", f"not here yet: {', '.join(absent)}", fix)


def _show(findings: list[Finding], console: Console) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for finding in findings:
        style = "red" if finding.fatal else "yellow" if finding.fix else ""
        table.add_row(finding.topic, finding.text, style=style)
    console.print(table)
    fixes = [finding.fix for finding in findings if finding.fix]
    console.print()
    if not fixes:
        console.print("Nothing is missing.")
        return
    console.print("To put right:")
    for fix in fixes:
        console.print(f"  {fix}", soft_wrap=True, highlight=False)
