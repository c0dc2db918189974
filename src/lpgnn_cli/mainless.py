"""Worker processes that do not run the user's script again.

A new process of multiprocessing imports the main module, as what it is to do might be defined
there. A script that calls `lpgnn.train` at its top level would then train in every worker as well.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_lock = threading.Lock()


@contextmanager
def without_main() -> Iterator[None]:
    """Processes that are started now find no main module to import."""
    with _lock:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
