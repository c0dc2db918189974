"""Options that are code as well as settings: aggregators, G functions and datasets, by name.

An option has settings (a dataclass), an implementation and values. The settings of lpgnn's own
options are declared in `lpgnn_cli.config`, so that composing a config imports no torch; their
implementations add themselves when their modules are imported, and their values are in
`conf/<group>/<name>.yaml`. A plug-in adds all three at once, the values as defaults of its
dataclass.

Hydra's schemas, the valid names, help and the way back from a stored config all come from here.
Only names lead to an implementation, so no config or checkpoint can name code to run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import Field, dataclass, fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from omegaconf import MISSING

from lpgnn_cli.errors import UserError

Code = TypeVar("Code", bound=Callable[..., Any])
Settings = TypeVar("Settings", bound=type)

PACKAGE = __name__.split(".")[0]
NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass
class Option(Generic[Code]):
    """One option of a group; `origin` is the plug-in that brought it, empty for lpgnn's own."""

    settings: type
    implementation: Code | None = None
    origin: str = ""
    # Whether every process finds it, through the entry points of a package.
    installed: bool = False
    # What its entry in Hydra's defaults list changes elsewhere, such as a dataset's protocol.
    overrides: tuple[tuple[str, str], ...] = ()


# Every group of this kind, by name.
GROUPS: dict[str, Options[Any]] = {}


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Options that are added inside go again if anything fails."""
    before = {group: dict(options.by_name) for group, options in GROUPS.items()}
    try:
        yield
    except BaseException:
        for group, options in GROUPS.items():
            options.by_name = before[group]
        raise


class Options(Generic[Code]):
    """The options of one group."""

    def __init__(self, group: str, common: str | None = None, free_names: bool = False) -> None:
        """`common` names the file in `conf/<group>/` with what all of its options have.

        With free names, `<group>.name` is the user's to choose: settings tell options apart.
        """
        self.group = group
        self.common = common
        self.free_names = free_names
        self.by_name: dict[str, Option[Code]] = {}
        GROUPS[group] = self

    def declare(self, *names: str) -> Callable[[Settings], Settings]:
        """Class decorator: these of lpgnn's own options have the settings of this dataclass."""

        def keep(settings: Settings) -> Settings:
            for name in names:
                assert name not in self.by_name
                self.by_name[name] = Option(settings)
            return settings

        return keep

    def add(
        self,
        name: str,
        base: type,
        settings: type,
        implementation: Code,
        overrides: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """An implementation: that of a declared option, or of a new one that a plug-in brings."""
        known = self.by_name.get(name)
        if _is_own(implementation):
            assert known is not None, f"{name} is not declared in lpgnn_cli.config"
            assert known.settings is settings, f"{name} is declared with other settings"
            known.implementation = implementation
            return
        if not (is_dataclass(settings) and issubclass(settings, base)):
            raise UserError(
                f"{self.group}={name} needs settings that are a dataclass below {base.__name__}."
            )
        if not NAME.fullmatch(name):
            raise UserError(
                f"{self.group}={name} is no name for an option: take small letters, digits and _."
            )
        if not _is_again(known, implementation):
            self._refuse_taken(name, known)
        shared = [other for other in self.names(settings) if other != name]
        if self.free_names and shared:
            raise UserError(
                f"{self.group}={name} needs a dataclass of its own: {settings.__name__} is that of "
                f"{self.group}={shared[0]}."
            )
        origin = f"the module {implementation.__module__}"
        self.by_name[name] = Option(settings, implementation, origin, overrides=overrides)

    def _refuse_taken(self, name: str, known: Option[Code] | None) -> None:
        # Not at the top: the whole of composing is built upon this module.
        from lpgnn_cli.config.compose import conf_dir

        if known is not None or (conf_dir() / self.group / f"{name}.yaml").is_file():
            owner = known.origin if known is not None and known.origin else "lpgnn itself"
            raise UserError(f"{self.group}={name} exists already, from {owner}.")

    def names(self, settings: type) -> tuple[str, ...]:
        """The options that have just these settings."""
        return tuple(n for n, option in self.by_name.items() if option.settings is settings)

    def of(self, config: Any) -> Option[Code]:
        """The option whose settings these are."""
        found = self._find(config)
        if found is None:
            from lpgnn_cli.config.installed import load_plugins

            load_plugins()  # in a worker process nothing has asked for them yet
            found = self._find(config)
        if found is None:
            raise UserError(f"{self.group}={config.name} is not known in this process.")
        return found

    def _find(self, config: Any) -> Option[Code] | None:
        names = self.names(type(config))
        name = names[0] if self.free_names and names else config.name
        return self.by_name[name] if name in names else None

    def implementation(self, config: Any) -> Code:
        found = self.of(config).implementation
        assert found is not None, f"no module adds {self.group}={config.name}"
        return found

    def schemas(self) -> dict[str, type]:
        """The names under which Hydra knows the dataclasses."""
        return {f"_{name}": option.settings for name, option in self.by_name.items()}

    def plugin_nodes(self) -> dict[str, dict[str, Any]]:
        """What `conf/<group>/<name>.yaml` would say, had plug-ins such files."""
        return {name: self._node(name, o) for name, o in self.by_name.items() if o.origin}

    def _node(self, name: str, option: Option[Code]) -> dict[str, Any]:
        common = [self.common] if self.common else []
        overrides = [{f"override {key}": value} for key, value in option.overrides]
        values = {f.name: _default(f) for f in fields(option.settings)}
        own = {key: value for key, value in values.items() if value != MISSING}
        return {"defaults": [f"_{name}", *common, "_self_", *overrides], **own, "name": name}

    def comments(self, name: str) -> tuple[str, dict[str, str]] | None:
        """What help says of a plug-in's option and of its settings; None for lpgnn's own."""
        option = self.by_name.get(name)
        if option is None or not option.origin:
            return None
        title = first_paragraph(option.implementation) or f"{name}."
        helps = {f.name: str(f.metadata.get("help", "")) for f in fields(option.settings)}
        return f"{title} (From {option.origin}.)", {n: text for n, text in helps.items() if text}


def must_stay_here(config: object) -> bool:
    """Whether an option is known to this process alone, so that no worker could use it."""
    chosen = [options.of(getattr(config, group)) for group, options in GROUPS.items()]
    return not all(_travels(option) for option in chosen if option.origin)


def _travels(option: Option[Any]) -> bool:
    """Settings bring their module along to another process, and it adds the option there."""
    module = option.settings.__module__
    own = getattr(option.implementation, "__module__", "")
    return option.installed or (module == own and module != "__main__")


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import all modules of a package, so that each of them adds its options."""
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")


def first_paragraph(documented: object) -> str:
    text = (getattr(documented, "__doc__", None) or "").strip()
    return " ".join(text.split("\n\n")[0].split())


def _default(setting: Field[Any]) -> Any:
    if setting.default_factory is not NO_DEFAULT:
        return setting.default_factory()
    return MISSING if setting.default is NO_DEFAULT else setting.default


def _is_own(implementation: Callable[..., Any]) -> bool:
    return implementation.__module__.split(".")[0] == PACKAGE


def _is_again(known: Option[Any] | None, implementation: Callable[..., Any]) -> bool:
    """Whether it is the same definition once more, as when a cell of a notebook runs again."""
    before = known.implementation if known is not None and known.origin else None
    return before is not None and (before.__module__, before.__qualname__) == (
        implementation.__module__,
        implementation.__qualname__,
    )
