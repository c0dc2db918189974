"""The commands of `lpgnn`: the table of all of them, and a module for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Command:
    """A plain command's module has `main(argv) -> int`, a Hydra command's has `run(config)`, and
    that of a sweep, whose every job Hydra composes, `sweep(loader, config_name, overrides)`."""

    summary: str
    kind: Literal["plain", "hydra", "sweep"] = "plain"

    def module(self, name: str) -> str:
        return f"lpgnn_cli.commands.{name}"


COMMANDS: dict[str, Command] = {
    "train": Command("train a network and report its accuracy", "hydra"),
    "eval": Command("score a trained network again, or on graphs it never saw", "hydra"),
    "predict": Command("classes of graphs or nodes that nobody has classified", "hydra"),
    "sweep": Command("train every combination of settings, resume, and rank them", "sweep"),
    "status": Command("how far a sweep is, also one that was left to a cluster"),
    "data": Command("list, describe and fetch datasets"),
    "runs": Command("a table of past runs, to filter and to sort"),
    "diff": Command("what differs between runs: settings, figures with a paired test, curves"),
    "report": Command("the tables of the paper, with what has been measured here"),
    "ui": Command("open the MLflow dashboard"),
    "sync": Command("send to MLflow what it does not have yet of a run"),
    "doctor": Command("what is installed, what is missing, and the command that fixes it"),
    "completion": Command("print the script that makes TAB work in bash, zsh or fish"),
}
