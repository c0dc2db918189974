"""Imported by the fork server before everything else, and by nobody else.

A signal to a whole group of processes must not end the fork server, as its workers then could not
be waited for: it ends when the process that uses it does. Workers can be ended, as usual. They
inherit how it allocates memory and what it has imported.
"""

import os
import signal

from lpgnn_cli import garbage, signals
from lpgnn_cli.allocator import tune_allocator

tune_allocator()
garbage.pause()
signals.ignore()
signals.unblock()
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
os.register_at_fork(after_in_child=garbage.resume)
