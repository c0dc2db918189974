from __future__ import annotations

import importlib.resources
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from lpgnn_cli.reporting.embedding import draw_film, draw_stages, read_states
from lpgnn_cli.reporting.figures import (
    Predictions,
    draw_confusion,
    draw_constraints,
    draw_curves,
    draw_residuals,
    make_figures,
)
from lpgnn_cli.reporting.look import style
from lpgnn_cli.reporting.summary import summarise
from lpgnn_cli.reporting.units import common_curves, read_units
from lpgnn_cli.runfolder import RunFolder

from ..conftest import present
from .conftest import MakeCurves, MakeRun


def write_predictions(run: RunFolder, items: int = 20, classes: int = 2) -> None:
    random = np.random.default_rng(0)
    for unit in run.read_record().units:
        lines = ["item,target,predicted,probability,violation"]
        for item in range(items):
            target, predicted = random.integers(classes, size=2)
            lines.append(f"{item},{target},{predicted},0.9,{random.lognormal(-6)}")
        (run.unit(unit.name) / "predictions.csv").write_text("\n".join(lines) + "\n")


def write_states(run: RunFolder, *, linear: bool = True, nodes: int = 34, epochs: int = 30) -> None:
    random = np.random.default_rng(0)
    targets = random.integers(4, size=nodes)
    centres = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]], dtype=float)
    grow = np.linspace(0, 1, epochs)[:, None, None]
    arrays: dict[str, Any] = {
        "epochs": np.arange(1, epochs + 1) * 10,
        "states": grow * (centres[targets] + random.normal(0, 0.2, (nodes, 2))),
        "targets": targets,
        "arcs": random.integers(nodes, size=(2, 80)),
    }
    if linear:
        arrays |= {"weight": grow * centres, "bias": np.zeros((epochs, 4))}
    np.savez(run.unit("fold-00") / "states.npz", **arrays)


def heights(line: Line2D) -> NDArray[np.float64]:
    return np.asarray(line.get_ydata(), dtype=np.float64)


def legend(panel: Axes) -> list[str]:
    return [text.get_text() for text in present(panel.get_legend()).get_texts()]


def total(patch: Patch) -> float:
    """Of the bars of a histogram."""
    assert isinstance(patch, StepPatch)
    values, _, _ = patch.get_data()
    return float(values.sum())


def check_picture(path: Path) -> None:
    pixels = imread(path)[..., :3]
    assert pixels.shape[0] > 300
    assert pixels.shape[1] > 400
    assert pixels.std() > 0.05
    # Nothing is cut off: the rim is white.
    for rim in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert rim.min() > 0.99


def test_a_run_gets_all_its_figures(make_run: MakeRun, realistic_curves: MakeCurves) -> None:
    run = make_run(realistic_curves(3, 60))
    write_predictions(run)
    np.savez(run.unit("fold-00") / "residuals.npz", train=np.r_[0.0, 0.1], test=np.r_[0.01, 0.02])
    write_states(run, epochs=5)
    summarise(run)
    before = dict(matplotlib.rcParams)
    paths = make_figures(run)
    assert {p.name for p in paths} == {
        "curves.png",
        "constraints.png",
        "confusion.png",
        "residuals.png",
        "embedding.png",
        "embedding.gif",
    }
    assert all(p.parent == run.figures for p in paths)
    for path in paths:
        if path.suffix == ".png":
            check_picture(path)
    assert dict(matplotlib.rcParams) == before


def test_figures_need_neither_pyplot_nor_a_display(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5, 0.6], "train/loss": [1.0, 0.5]}])
    program = (
        "import sys; from lpgnn_cli.reporting import figures; "
        "assert 'matplotlib' not in sys.modules; "
        "from lpgnn_cli.runfolder import RunFolder; "
        "assert figures.make_figures(RunFolder.open(sys.argv[1])); "
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(run.path)],
        check=True,
    )


def test_curves_show_accuracy_in_per_cent_and_the_optimistic_best_epoch(make_run: MakeRun) -> None:
    run = make_run(
        [
            {"test/accuracy": [0.5, 0.9], "train/loss": [1.0, 0.5]},
            {"test/accuracy": [0.7, 0.8], "train/loss": [1.0, 0.7]},
        ]
    )
    with style():
        curves = common_curves(read_units(run))
        figure = present(draw_curves(curves, summarise(run), "title"))
    accuracy, loss = figure.axes
    assert list(heights(accuracy.lines[0])) == pytest.approx([60.0, 85.0])
    assert list(heights(loss.lines[0])) == pytest.approx([1.0, 0.6])
    texts = legend(accuracy)
    assert "best epoch 2: 85.0 % (optimistic)" in texts
    assert "last epoch, from zero: 85.0 % (honest)" in texts
    band = np.asarray(accuracy.collections[0].get_paths()[0].vertices)[:, 1]
    assert band.min() == pytest.approx(50.0)
    assert band.max() == pytest.approx(90.0)
    assert figure.get_suptitle() == "title"


def test_constraints_survive_zeros_on_their_logarithmic_axes(
    make_run: MakeRun, realistic_curves: MakeCurves
) -> None:
    curves = realistic_curves(2, 5)
    for columns in curves:
        columns["train/layer1/multiplier_norm"] = np.zeros(5)
    run = make_run(curves)
    with style():
        figure = present(draw_constraints(common_curves(read_units(run)), "title"))
        figure.draw_without_rendering()
    violation, multiplier = figure.axes
    assert violation.get_yscale() == multiplier.get_yscale() == "log"
    assert len(violation.lines) == 6
    # The multipliers start at zero, which has no place on the axis.
    assert list(np.asarray(multiplier.lines[0].get_xdata())) == [2, 3, 4, 5]
    assert legend(multiplier)[1].endswith("(zero)")


def test_layers_has_no_constraints_and_fixed_point_no_multipliers(make_run: MakeRun) -> None:
    plain = make_run([{"test/accuracy": [0.5, 0.6]}])
    fixed = make_run([{"test/accuracy": [0.5], "train/violation_mean": [0.1]}])
    with style():
        assert draw_constraints(common_curves(read_units(plain)), "") is None
        assert len(present(draw_constraints(common_curves(read_units(fixed)), "")).axes) == 1


def test_all_violations_zero_is_drawn_without_a_logarithm(make_run: MakeRun) -> None:
    run = make_run([{"train/violation_mean": [0.0, 0.0]}])
    with style():
        figure = present(draw_constraints(common_curves(read_units(run)), ""))
        figure.draw_without_rendering()
    assert figure.axes[0].get_yscale() == "linear"


def test_confusion_counts_targets_by_row() -> None:
    predictions = Predictions(
        target=np.array([0, 0, 0, 1]), predicted=np.array([0, 1, 1, 1]), violation=np.zeros(4)
    )
    with style():
        panel, _ = present(draw_confusion(predictions, "title")).axes
    assert [t.get_text().split("\n")[0] for t in panel.texts] == ["1", "2", "0", "1"]
    shares = present(panel.images[0].get_array())
    np.testing.assert_allclose(shares, np.array([[100 / 3, 200 / 3], [0, 100]]))
    assert panel.get_title() == "4 predictions, 50.0 % right"


def test_residuals_count_zeros_and_sum_to_all(make_run: MakeRun) -> None:
    residuals = {"train": np.array([0.0, 0.1, 0.01, 0.001]), "test": np.array([0.5])}
    with style():
        figure = present(draw_residuals(None, residuals, "title"))
        figure.draw_without_rendering()
    (panel,) = figure.axes
    assert legend(panel)[0] == "train (4): median 5.5e-3, 25 % zero"
    shares = [total(patch) for patch in panel.patches]
    assert shares == pytest.approx([75, 75, 100, 100])


def test_a_few_vanishing_residuals_do_not_stretch_the_axis() -> None:
    residuals = {"train": np.r_[1e-30, np.geomspace(1e-3, 1e-2, 5000)]}
    with style():
        (panel,) = present(draw_residuals(None, residuals, "title")).axes
    assert panel.get_xlim()[0] > 1e-4
    assert total(panel.patches[0]) == pytest.approx(100)


def test_a_network_without_constraints_has_no_histogram() -> None:
    predictions = Predictions(np.array([0, 1]), np.array([0, 0]), violation=np.zeros(2))
    assert draw_residuals(predictions, {}, "title") is None


def test_embedding_shows_beginning_middle_and_end(make_run: MakeRun) -> None:
    run = make_run([{"train/accuracy": [0.5]}])
    write_states(run, epochs=31)
    states = present(read_states(run.unit("fold-00") / "states.npz"))
    with style():
        figure = draw_stages(states, "title")
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["beginning: epoch 10", "half way: epoch 160", "end: epoch 310"]
    panel = figure.axes[-1]
    assert len({line.get_marker() for line in panel.lines}) == 4
    assert len({line.get_markerfacecolor() for line in panel.lines}) == 4
    # The readout is known: class 0 has the upper right corner, class 2 the lower left.
    background = present(panel.images[0].get_array())
    colours = {tuple(background[r, c]) for r in (0, -1) for c in (0, -1)}
    assert len(colours) == 4
    assert sum(len(heights(line)) for line in panel.lines) == 34


def test_embedding_without_linear_readout_has_no_background(make_run: MakeRun) -> None:
    run = make_run([{"train/accuracy": [0.5]}])
    write_states(run, linear=False)
    with style():
        figure = draw_stages(present(read_states(run.unit("fold-00") / "states.npz")), "title")
    assert all(not panel.images for panel in figure.axes)


@pytest.mark.parametrize("epochs", [1, 200])
def test_film_has_at_most_sixty_frames_and_three_megabytes(make_run: MakeRun, epochs: int) -> None:
    run = make_run([{"train/accuracy": [0.5]}])
    write_states(run, epochs=epochs)
    film = run.path / "film.gif"
    with style():
        draw_film(present(read_states(run.unit("fold-00") / "states.npz")), "title", film)
    with Image.open(film) as image:
        frames = sum(1 for _ in ImageSequence.Iterator(image))
    assert frames == (1 if epochs == 1 else 60)
    assert film.stat().st_size < 3_000_000


def test_states_that_never_move_or_are_not_finite_can_be_drawn(make_run: MakeRun) -> None:
    run = make_run([{"train/accuracy": [0.5]}])
    path = run.unit("fold-00") / "states.npz"
    states = np.zeros((3, 4, 2))
    states[2] = np.nan
    np.savez(path, epochs=np.arange(3), states=states, targets=np.zeros(4, dtype=int))
    assert len(present(read_states(path)).epochs) == 2
    assert run.figures / "embedding.png" in make_figures(run)
    np.savez(path, epochs=np.arange(1), states=states[2:], targets=np.zeros(4, dtype=int))
    assert read_states(path) is None


def test_a_run_without_data_gets_no_figures(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5]}])
    (run.unit("fold-00") / "metrics.csv").unlink()
    assert make_figures(run) == []


def test_a_name_with_dollars_is_no_formula(make_run: MakeRun) -> None:
    run = make_run([{"test/accuracy": [0.5]}], config={"dataset": {"name": "a$_$b$\\x$"}})
    assert make_figures(run)


def test_the_style_file_is_part_of_the_package() -> None:
    assert importlib.resources.files("lpgnn_cli.reporting").joinpath("lpgnn.mplstyle").is_file()
