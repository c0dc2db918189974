"""The two ways a command can end badly."""


class UserError(ValueError):
    """Something the user can put right: one sentence on stderr, exit code 2."""


class RunFailed(RuntimeError):
    """The run itself failed (divergence, a lost fold): exit code 1, what was computed is kept."""
