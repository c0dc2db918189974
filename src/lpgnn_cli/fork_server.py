"""Imported by the fork server before everything else, and by nobody else.

A signal to a whole group of processes must not end the fork server, as its workers then could not
be waited for: it ends when the process that uses it does. Workers can be ended, as usual. They
inherit how it allocates memory and what it has imported.
"""

import os
import pickle
import signal
import sys
from types import TracebackType

from lpgnn_cli import garbage, signals
from lpgnn_cli.tuning import tune_process


def _complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Not of a worker whose user ended in the midst of telling it what to do."""
    if not issubclass(kind, EOFError | pickle.UnpicklingError):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _complain
tune_process()
garbage.pause()
signals.ignore()
signals.unblock()
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
os.register_at_fork(after_in_child=garbage.resume)
