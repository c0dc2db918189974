"""Python's garbage collector, kept away from what is imported.

What torch, Hydra or MLflow make when they are imported stays to the end. The collector would go
through it again and again meanwhile, a fifth of the time to import them, and once more when the
process ends: 0.4 s of `lpgnn train`.
"""

from __future__ import annotations

import gc


def pause() -> None:
    """Nothing is collected until `resume`: what follows are imports."""
    gc.disable()


def resume() -> None:
    """What is there by now stays, and is not looked at again; nothing where there was no pause."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def leave_behind() -> None:
    """This process is about to end, and all its memory with it."""
    gc.freeze()
