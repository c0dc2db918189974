"""`lpgnn`: the first word picks the command; nothing heavy is imported before it must be."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from lpgnn_cli import garbage, signals
from lpgnn_cli.commands import COMMANDS
from lpgnn_cli.credentials import keep_in_words, redact
from lpgnn_cli.errors import RunFailed, UserError, describe_os_error
from lpgnn_cli.version import __version__

FULL_ERROR = "HYDRA_FULL_ERROR"


def program() -> int:
    """`lpgnn` as a program: a signal interrupts it as long as there is something to interrupt."""
    signals.interrupt_from_now()
    garbage.pause()
    try:
        return main()
    except KeyboardInterrupt as interruption:  # while it was ending
        return signals.exit_code(interruption)
    finally:
        signals.ignore()
        garbage.leave_behind()


def main(argv: Sequence[str] | None = None) -> int:
    """Run `lpgnn` with these words and return the exit code."""
    words = keep_in_words(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except UserError as error:
        return _broken_off() or _report(error, 2)
    except RunFailed as error:
        return _report(error, error.code)
    except KeyboardInterrupt as interruption:
        return _interrupted(interruption)
    except BrokenPipeError:
        # The reader (`| head`) has gone; keep Python from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _report(RunFailed(f"{describe_os_error(error)}."), 1)
    except Exception:
        broken_off = _broken_off()
        if broken_off is None:
            raise
        return broken_off


def _broken_off() -> int | None:
    """An import that a signal breaks off may say so in words of its own."""
    number = signals.swallowed()
    return None if number is None else _interrupted(signals.Interruption(number))


def _interrupted(interruption: KeyboardInterrupt) -> int:
    print("lpgnn: interrupted.", file=sys.stderr)
    return signals.exit_code(interruption)


def _report(error: Exception, code: int) -> int:
    """One line on stderr, or the traceback where $HYDRA_FULL_ERROR asks for it."""
    if os.environ.get(FULL_ERROR) == "1":
        raise error
    print(f"lpgnn: {redact(' '.join(str(error).split()))}", file=sys.stderr)
    return code


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    name, rest = words[0], words[1:]
    if name in ("-V", "--version"):
        print(f"lpgnn {__version__}")
        return 0
    if name in ("-sc", "--shell-completion"):
        from lpgnn_cli.commands import completion

        return completion.shell(rest)
    if name not in COMMANDS:
        raise UserError(_unknown(name, words))
    command = COMMANDS[name]
    if command.kind != "plain":
        from lpgnn_cli.hydra_command import run_hydra_command

        return run_hydra_command(name, command, rest)
    module = import_module(command.module(name))
    garbage.resume()
    code: int = module.main(rest)
    return code


def _help() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = "\n".join(f"  {name:<{width}}{c.summary}" for name, c in COMMANDS.items())
    return f"""\
Lagrangian Propagation Graph Neural Networks: an experiment runner.

usage: lpgnn COMMAND [...]

{lines}

`lpgnn COMMAND --help` says more; `lpgnn --version` prints the version.
Settings are written key=value: lpgnn train dataset=mutag g=abs_eps lr.theta=1e-3"""


def _unknown(name: str, words: list[str]) -> str:
    from lpgnn_cli.config.suggest import did_you_mean

    if "=" in name:
        return f"the command is missing; did you mean `lpgnn train {' '.join(words)}`?"
    hint = did_you_mean(name, COMMANDS) or f"Commands: {', '.join(COMMANDS)}."
    return f"there is no command {name}. {hint}"
