"""Commands that Hydra composes: `lpgnn train dataset=mutag -m seed=1,2`, with all of its flags."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from lpgnn_cli import garbage
from lpgnn_cli.commands import Command
from lpgnn_cli.config.compose import check_overrides, conf_dir, load, make_loader, to_typed
from lpgnn_cli.config.hydra_internals import make_flag_parser, run_app
from lpgnn_cli.config.registry import must_stay_here
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.config.suggest import did_you_mean
from lpgnn_cli.errors import RunFailed, UserError
from lpgnn_cli.processes import UNIT_MODULES, cores, start_fork_server
from lpgnn_cli.tuning import tune_process


def run_hydra_command(name: str, command: Command, argv: list[str]) -> int:
    """Let Hydra run `commands/<name>.py` with the config that `conf/<name>.yaml` and argv give."""
    parser = make_flag_parser()
    args = _parse(parser, argv)
    config_name = args.config_name or name
    if args.config_path is not None:
        args.config_path = os.path.abspath(args.config_path)
    loader = make_loader(args.config_dir, args.config_path)
    if args.shell_completion:
        from lpgnn_cli.commands import completion

        return completion.shell(args.overrides, command=name)
    if args.help:
        from lpgnn_cli.config.describe import describe

        print(describe(loader, config_name, args.overrides, name, command.summary))
        return 0
    sweeps = command.kind == "sweep"
    if args.cfg or args.info:
        load(loader, config_name, args.overrides, multirun=sweeps)
    elif not args.hydra_help:
        typed = check_overrides(
            loader, config_name, args.overrides, multirun=args.multirun or sweeps
        )
        if sweeps:
            module = _imported(command.module(name))
            return int(module.sweep(loader, config_name, args.overrides))
        if isinstance(typed, TrainConfig) and may_have_workers(typed):
            # It imports torch, and so does this process: side by side, not one after the other.
            start_fork_server(UNIT_MODULES)
    try:
        run_app(args, parser, _task(command.module(name)), str(conf_dir()), config_name)
    except _Failed as failed:
        raise failed.error from failed.error.__cause__
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def _parse(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """Hydra's flags; a wrong one is a `UserError`, not a screen of usage."""
    parser.exit_on_error = False
    try:
        args, unknown = parser.parse_known_args(argv)
    except argparse.ArgumentError as error:
        raise UserError(f"{error}.") from error
    # Overrides may come before, between and after the flags.
    flags = [word for word in unknown if word.startswith("-")]
    args.overrides += [word for word in unknown if not word.startswith("-")]
    if flags:
        known = [s for action in parser._actions for s in action.option_strings]
        raise UserError(f"there is no flag {flags[0]}. {did_you_mean(flags[0], known)}")
    exclusive = ("run", "multirun", "cfg", "info", "shell_completion")
    if sum(bool(getattr(args, flag)) for flag in exclusive) > 1:
        raise UserError("choose one of --run, --multirun, --cfg, --info and --shell-completion.")
    if args.resolve and not args.cfg:
        raise UserError("--resolve goes with --cfg.")
    if args.experimental_rerun is not None:
        raise UserError("--experimental-rerun would unpickle a file: use resume=<run folder>.")
    return args


class _Failed(SystemExit):
    """Brings an error past Hydra, which would print exceptions of other kinds itself."""

    def __init__(self, error: UserError | RunFailed | OSError) -> None:
        super().__init__(1)
        self.error = error


def may_have_workers(config: TrainConfig) -> bool:
    """Whether there will be units to train side by side, as far as it is known before the data."""
    protocol = config.protocol
    units = protocol.repeats * (getattr(protocol, "folds", None) or 1)
    if units == 1 or config.resume is not None or not config.device.startswith(("auto", "cpu")):
        return False
    if must_stay_here(config):
        return False
    return cores() > 1 if protocol.workers == "auto" else protocol.workers != "1"


def _imported(module: str) -> ModuleType:
    """The module of a command, with all that takes its time to import."""
    imported = import_module(module)
    garbage.resume()
    return imported


def _task(module: str) -> Callable[[DictConfig], float | None]:
    def task(config: DictConfig) -> float | None:
        tune_process()
        try:
            typed = to_typed(config)
            result: float | None = _imported(module).run(typed)
        except (UserError, RunFailed) as error:
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                raise  # the other jobs go on; Hydra reports this one at the end
            raise _Failed(error) from error
        except OSError as error:
            raise _Failed(error) from error
        return result

    return task
