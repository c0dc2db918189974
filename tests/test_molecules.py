"""examples/molecules.py: a table of molecules becomes graphs that can be trained on."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lpgnn_cli as lpgnn

SCRIPT = Path(__file__).parents[1] / "examples" / "molecules.py"
TABLE = "mol,solubility,polar\nCCO,0.5,1\nc1ccccc1,-1.5,0\nnonsense,0,0\nC=O,0.1,1\nCC#N,0.2,1\n"


@pytest.fixture
def convert(tmp_path: Path) -> Callable[..., dict[str, np.ndarray]]:
    table = tmp_path / "table.csv"
    table.write_text(TABLE, encoding="utf-8")
    main = runpy.run_path(str(SCRIPT))["main"]

    def run(*options: str) -> dict[str, np.ndarray]:
        graphs = tmp_path / "graphs.npz"
        main([str(table), str(graphs), "--smiles", "mol", *options])
        with np.load(graphs) as file:
            return dict(file)

    return run


def test_atoms_are_nodes_and_bonds_are_arcs_both_ways(
    convert: Callable[..., dict[str, np.ndarray]], capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = convert("--target", "polar")
    assert "molecule 3 left out: 'nonsense'" in capsys.readouterr().err
    assert arrays["graph_ptr"].tolist() == [0, 3, 9, 11, 14]
    # C, N, O: ethanol is C, C, O; formaldehyde C, O.
    assert arrays["features"][:3].argmax(axis=1).tolist() == [0, 0, 2]
    assert arrays["features"][9:11].argmax(axis=1).tolist() == [0, 2]
    arcs = list(zip(arrays["source"].tolist(), arrays["target"].tolist(), strict=True))
    assert sorted(arcs[:4]) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert set(arcs) == {(v, u) for u, v in arcs}
    # Two single bonds, six of a ring, a double one, a single one and a triple one, each way.
    assert arrays["arc_labels"].sum(axis=0).tolist() == [6, 2, 2, 12]
    assert arrays["targets"].tolist() == [1, 0, 1, 1]


def test_hydrogens_and_numbers(convert: Callable[..., dict[str, np.ndarray]]) -> None:
    arrays = convert("--target", "solubility", "--hydrogens")
    assert np.diff(arrays["graph_ptr"]).tolist() == [9, 12, 4, 6]
    assert arrays["targets"].tolist() == pytest.approx([0.5, -1.5, 0.1, 0.2])


def test_columns_agree_with_those_of_training(
    convert: Callable[..., dict[str, np.ndarray]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert("--atoms", "N,O,S,C")["features"][:3].argmax(axis=1).tolist() == [3, 3, 1]
    with pytest.raises(SystemExit):
        convert("--atoms", "C,O")
    assert "no column for N" in capsys.readouterr().err


def test_it_trains(convert: Callable[..., dict[str, np.ndarray]], tmp_path: Path) -> None:
    convert("--target", "solubility")
    run = lpgnn.train(
        f"dataset.path={tmp_path / 'graphs.npz'}",
        dataset="graphs",
        epochs=2,
        protocol={"folds": 2},
        tracking="none",
        figures=False,
    )
    assert run.summary["units_finished"] == 2
