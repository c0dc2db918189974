"""The ways a command can end badly."""

from pathlib import Path


class UserError(ValueError):
    """Something the user can put right: one sentence on stderr, exit code 2."""


class RunFailed(RuntimeError):
    """The run itself failed (divergence, a lost fold): exit code 1, what was computed is kept."""

    def __init__(self, sentence: str, folder: Path | None = None, code: int = 1) -> None:
        super().__init__(sentence)
        # Where what was computed is, if there is a run at all.
        self.folder = folder
        # One that a signal ended has the code of that signal.
        self.code = code


def describe_os_error(error: OSError) -> str:
    """Which file, and what is wrong with it or with its disk."""
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
