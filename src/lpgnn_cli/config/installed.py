"""Plug-ins from installed packages: entry points of the group `lpgnn.plugins`.

Each names a module that adds options by the decorators of `lpgnn_cli.plugins`. A plug-in that does
not load is left out, with a sentence that names its package; everything else goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from lpgnn_cli.config.registry import GROUPS, all_or_nothing
from lpgnn_cli.errors import UserError

ENTRY_POINTS = "lpgnn.plugins"


@dataclass(frozen=True)
class Plugin:
    """An installed plug-in: the options it brought (`aggregator=mine`), or why it brought none."""

    package: str
    options: tuple[str, ...] = ()
    problem: str = ""

    @property
    def sentence(self) -> str:
        return f"the plug-in package {self.package} is left out: {self.problem}"


@cache
def load_plugins() -> tuple[Plugin, ...]:
    """Import every installed plug-in, once in each process."""
    found = sorted(
        entry_points(group=ENTRY_POINTS), key=lambda entry: (_package(entry), entry.name)
    )
    return tuple(map(_load, found))


def _load(entry: EntryPoint) -> Plugin:
    package = _package(entry)
    try:
        with all_or_nothing():
            entry.load()
    except UserError as error:
        return Plugin(package, problem=str(error))
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Plugin(package, problem=f"{entry.module} does not load ({reason}).")
    brought = []
    for group, options in GROUPS.items():
        for name, option in options.by_name.items():
            module = getattr(option.implementation, "__module__", "")
            if module == entry.module or module.startswith(f"{entry.module}."):
                option.origin, option.installed = package, True
                brought.append(f"{group}={name}")
    return Plugin(package, tuple(sorted(brought)))


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module
