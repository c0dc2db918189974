"""`lpgnn completion bash`: TAB completes commands, groups, options and settings.

Hydra's own completion scripts ask the program they complete, `lpgnn -sc query=<shell>`, with the
line so far in $COMP_LINE. The first word after `lpgnn` is completed here, the rest by Hydra.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys

from lpgnn_cli.commands import COMMANDS
from lpgnn_cli.config.suggest import alternatives
from lpgnn_cli.errors import UserError

INSTALL = {
    "bash": 'eval "$(lpgnn completion bash)"',
    "zsh": 'autoload -Uz bashcompinit && bashcompinit; eval "$(lpgnn completion zsh)"',
    "fish": "lpgnn completion fish | source",
}


def main(argv: list[str]) -> int:
    if argv in (["-h"], ["--help"]) or not argv:
        print("Print a script that makes TAB complete lpgnn's commands and settings. To use it:\n")
        for name, line in INSTALL.items():
            print(f"  {name:<6}{line}")
        return 0
    if len(argv) > 1 or argv[0] not in INSTALL:
        raise UserError(f"the shell must be {alternatives(list(INSTALL))}, not {' '.join(argv)}.")
    return shell([f"install={argv[0]}"])


def shell(words: list[str], command: str | None = None) -> int:
    """Hydra's `-sc install=bash`, `uninstall=bash` and `query=bash`."""
    from lpgnn_cli.config.root import not_for_users

    verb, _, name = "".join(words).partition("=")
    if verb not in ("install", "uninstall", "query") or name not in INSTALL:
        raise UserError("-sc takes install=, uninstall= or query= with bash, zsh or fish.")
    if verb != "query":
        _hydra_completion(verb, name, "train")
        return 0
    before, *typed = _line_words(os.environ.get("COMP_LINE", ""))
    if command is None and len(typed) < 2:
        _print(name, [c for c in COMMANDS if c.startswith("".join(typed))])
        return 0
    chosen = command or typed[0]
    if chosen in COMMANDS and COMMANDS[chosen].kind == "hydra":
        rest = typed if command else typed[1:]
        last = rest[-1] if rest else ""
        os.environ["COMP_LINE"] = " ".join([before, *rest])
        with contextlib.redirect_stdout(io.StringIO()) as said:
            _hydra_completion(verb, name, chosen)
        hidden = not_for_users(chosen)
        # Schemas are not for users to choose, and Hydra's own settings are on offer once typed.
        found = [
            word
            for word in said.getvalue().split()
            if not word.rpartition("=")[2].startswith("_")
            and re.split("[.=]", word)[0] not in hidden
            and ("hydra" in last or not word.startswith("hydra"))
        ]
        _print(name, found)
    return 0


def _line_words(line: str) -> list[str]:
    """The words so far; the last one is empty when a new word begins."""
    words = line.split()
    return [*words, ""] if line[-1:].isspace() or len(words) < 2 else words


def _print(shell_name: str, words: list[str]) -> None:
    print(("\n" if shell_name == "fish" else " ").join(words))


def _hydra_completion(verb: str, shell_name: str, command: str) -> None:
    from lpgnn_cli.config.compose import make_loader
    from lpgnn_cli.config.hydra_internals import completion_plugin

    # Hydra names the completed program after argv[0], which is a path under `python -m`.
    sys.argv[0] = "lpgnn"
    plugin = completion_plugin(make_loader(), shell_name)
    if verb == "query":
        plugin.query(config_name=command)
    elif verb == "install":
        plugin.install()
    else:
        plugin.uninstall()
