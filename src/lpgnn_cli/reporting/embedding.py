"""Two-dimensional node states over the epochs, before the regions the readout assigns to classes.

Shapes: E recorded epochs, N nodes, C classes, A arcs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lpgnn_cli.reporting.look import new_figure, save_figure
from lpgnn_cli.reporting.units import Array
from lpgnn_cli.runfolder import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*"
COLOURS = 7  # of the palette; its eighth, yellow, is too pale for points
GRID = 240
# Arcs beyond this many are a grey carpet that hides the nodes.
MOST_ARCS = 4000
MOST_FRAMES = 60
FRAME_MILLISECONDS = 120
REST_MILLISECONDS = 2000


@dataclass(frozen=True)
class States:
    """`states.npz`: states (E, N, 2) and, for a linear readout, its weight (E, C, 2) and bias."""

    epochs: NDArray[np.int64]
    states: Array
    targets: NDArray[np.int64]
    weight: Array | None
    bias: Array | None
    arcs: NDArray[np.int64]

    @property
    def num_classes(self) -> int:
        known = int(self.targets.max()) + 1
        return known if self.weight is None else max(known, self.weight.shape[1])


def draw_embedding(run: RunFolder, units: Sequence[str], title: str) -> list[Path]:
    """`embedding.png` and `embedding.gif` of the first unit that recorded its states."""
    for unit in units:
        path = run.unit(unit) / "states.npz"
        if path.is_file():
            states = read_states(path)
            heading = title if len(units) == 1 else f"{title} ({unit})"
            if states is not None:
                picture, film = run.figures / "embedding.png", run.figures / "embedding.gif"
                save_figure(draw_stages(states, heading), picture)
                draw_film(states, heading, film)
                return [picture, film]
    return []


def read_states(path: Path) -> States | None:
    """The states that are finite; None if there are none, or not of two dimensions."""
    with np.load(path, allow_pickle=False) as arrays:
        found: dict[str, Any] = {name: arrays[name] for name in arrays.files}
    states = found["states"].astype(np.float64)
    if states.ndim != 3 or states.shape[2] != 2 or not states.shape[1]:
        return None
    usable = np.isfinite(states).all(axis=(1, 2))
    if not usable.any():
        return None
    linear = "weight" in found and "bias" in found
    return States(
        epochs=found["epochs"][usable],
        states=states[usable],
        targets=found["targets"].astype(np.int64),
        weight=found["weight"][usable].astype(np.float64) if linear else None,
        bias=found["bias"][usable].astype(np.float64) if linear else None,
        arcs=found.get("arcs", np.empty((2, 0), dtype=np.int64)),
    )


def draw_stages(states: States, title: str) -> Figure:
    """Beginning, middle and end side by side, on the same axes."""
    last = len(states.epochs) - 1
    stages = list(dict.fromkeys([0, _half_way(states.states), last]))
    names = {0: "beginning", last: "end"}
    figure = new_figure(3.7 * len(stages) + 0.6, 4.6, title)
    panels = figure.subplots(1, len(stages), squeeze=False, sharex=True, sharey=True)[0]
    for panel, stage in zip(panels, stages, strict=True):
        Scene(panel, states).show(stage)
        name = names.get(stage, "half way")
        panel.set_title(f"{name}: epoch {states.epochs[stage]}")
        panel.set_xlabel("state 1")
    panels[0].set_ylabel("state 2")
    _add_legend(figure, panels[0])
    return figure


def _half_way(states: Array) -> int:
    """Where the nodes have half of their way before them: most of it is made in few epochs."""
    distance = np.linalg.norm(states - states[-1], axis=2).mean(axis=1)
    return int(np.abs(distance - distance[0] / 2).argmin())


def draw_film(states: States, title: str, path: Path) -> None:
    """The way from the first to the last epoch, with a rest at the end."""
    from PIL import Image

    figure = new_figure(4.8, 5.0, title)
    panel = figure.subplots()
    scene = Scene(panel, states)
    panel.set(xlabel="state 1", ylabel="state 2")
    _add_legend(figure, panel)
    stages = np.unique(np.linspace(0, len(states.epochs) - 1, MOST_FRAMES).round().astype(int))
    frames = []
    for stage in stages:
        scene.show(int(stage))
        panel.set_title(f"epoch {states.epochs[stage]}")
        frames.append(Image.fromarray(_pixels(figure)).convert("RGB"))
        # The layout is settled by the first frame; solving it anew costs most of the time.
        figure.set_layout_engine("none")
    # Few colours are used, so dithering would only add size and flicker.
    method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    frames = [frame.quantize(128, method=method, dither=dither) for frame in frames]
    milliseconds = [FRAME_MILLISECONDS] * (len(frames) - 1) + [REST_MILLISECONDS]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=milliseconds, loop=0, optimize=False
    )


def _pixels(figure: Figure) -> NDArray[np.uint8]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figure)  # its methods have no types
    canvas.draw()
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)


class Scene:
    """One panel with nodes, arcs and background, which can be moved to another epoch."""

    def __init__(self, panel: Axes, states: States) -> None:
        from matplotlib.collections import LineCollection

        self._states = states
        (left, right), (bottom, top) = _limits(states.states)
        self._grid = np.stack(
            np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID)), axis=-1
        )
        panel.set(xlim=(left, right), ylim=(bottom, top))
        panel.locator_params(nbins=5)
        panel.grid(False)
        self._background = None
        if states.weight is not None:
            self._background = panel.imshow(
                np.ones((GRID, GRID, 3)),
                extent=(left, right, bottom, top),
                origin="lower",
                aspect="auto",
                interpolation="nearest",
                zorder=0,
            )
        drawn = states.arcs.shape[1] <= MOST_ARCS
        self._arcs = (
            states.arcs[:, states.arcs[0] < states.arcs[1]] if drawn else states.arcs[:, :0]
        )
        self._lines = LineCollection([], colors="0.35", linewidths=0.4, alpha=0.45, zorder=1)
        panel.add_collection(self._lines, autolim=False)
        crowded = states.states.shape[1] > 300
        self._points = {
            c: panel.plot(
                [],
                [],
                linestyle="none",
                marker=MARKERS[c % len(MARKERS)],
                markersize=3.5 if crowded else 7.5,
                markerfacecolor=_colour(c),
                markeredgecolor="white",
                markeredgewidth=0.4 if crowded else 0.8,
                label=f"class {c}",
                zorder=2,
            )[0]
            for c in range(states.num_classes)
        }

    def show(self, stage: int) -> None:
        positions = self._states.states[stage]
        for c, points in self._points.items():
            points.set_data(*positions[self._states.targets == c].T)
        self._lines.set_segments(list(positions[self._arcs.T]))
        if self._background is not None:
            assert self._states.weight is not None
            assert self._states.bias is not None
            scores = self._grid @ self._states.weight[stage].T + self._states.bias[stage]
            tints = np.array([_tint(c) for c in range(self._states.num_classes)])
            self._background.set_data(tints[scores.argmax(axis=-1)])


def _add_legend(figure: Figure, panel: Axes) -> None:
    handles, labels = panel.get_legend_handles_labels()
    columns = min(len(handles), 8)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _limits(states: Array) -> tuple[tuple[float, float], tuple[float, float]]:
    """Common limits of all epochs, with a margin, and never of no extent."""
    low, high = states.min(axis=(0, 1)), states.max(axis=(0, 1))
    margin = np.maximum(0.08 * (high - low), 1e-6)
    (left, bottom), (right, top) = low - margin, high + margin
    return (float(left), float(right)), (float(bottom), float(top))


def _colour(c: int) -> str:
    return f"C{c % COLOURS}"


def _tint(c: int) -> tuple[float, float, float]:
    """The colour of a class, mixed with much white."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(_colour(c))
    share = 0.28
    return 1 - share * (1 - red), 1 - share * (1 - green), 1 - share * (1 - blue)
