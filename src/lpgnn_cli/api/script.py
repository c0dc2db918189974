"""Scripts that call us at their top level, without `if __name__ == "__main__"`.

A new process of multiprocessing imports the main module, as what it is to do might be defined
there. Such a script would then train in every worker process as well. One with a guard is imported,
as usual.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType

GUARDS = ("__name__ == '__main__'", "'__main__' == __name__")


@contextmanager
def importable_by_workers() -> Iterator[None]:
    """Processes that are started now find a main module that may be imported, or none."""
    main = sys.modules["__main__"]
    if _is_guarded(main):
        yield
        return
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _is_guarded(main: ModuleType) -> bool:
    """Whether importing it would not come to where it is now; a notebook cannot be imported."""
    file = getattr(main, "__file__", None)
    if file is None:
        return True
    try:
        statements = ast.parse(Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return False
    line = _line_of(main)
    return any(
        isinstance(statement, ast.If)
        and ast.unparse(statement.test) in GUARDS
        and statement.lineno <= line <= (statement.end_lineno or 0)
        for statement in statements
    )


def _line_of(main: ModuleType) -> int:
    """The line of the script that is being executed, whichever thread asks; 0 if none is."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals is main.__dict__:
            return frame.f_lineno
        frame = frame.f_back
    return 0
