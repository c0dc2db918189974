"""How figures are made and styled.

They are plain `Figure` objects on the Agg canvas: no pyplot, no backend, no display. The style file
is in force only while they are drawn, and matplotlib is imported only then.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def style() -> AbstractContextManager[None]:
    import matplotlib.style

    path = Path(__file__).with_name("lpgnn.mplstyle")
    context: AbstractContextManager[None] = matplotlib.style.context(path, after_reset=True)
    return context


def new_figure(width: float, height: float, title: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    figure.suptitle(title, parse_math=False)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """As a PNG; `Figure.savefig` would draw it twice, to find the layout first."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).print_png(path)  # type: ignore[no-untyped-call]
