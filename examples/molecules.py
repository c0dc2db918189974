"""Molecules in a table become graphs: atoms are nodes, and bonds are arcs both ways.

    pip install rdkit
    python examples/molecules.py bace.csv bace.npz --smiles mol --target Class
    lpgnn train dataset=graphs dataset.path=bace.npz

Whole numbers from 0 are classes, others numbers to learn. Without a target the file is for
`lpgnn predict`; give it the atoms of the file that was trained on then, so that columns agree.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem, rdBase

BONDS = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, help="a CSV file with a header")
    parser.add_argument("graphs", type=Path, help="the npz file to write")
    parser.add_argument("--smiles", default="smiles", help="the column of molecules")
    parser.add_argument("--target", help="the column of classes or numbers")
    parser.add_argument("--atoms", help="the elements that have columns, e.g. C,N,O; all there are")
    parser.add_argument("--hydrogens", action="store_true", help="make them nodes, too")
    given = parser.parse_args(arguments)

    with given.table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for column in filter(None, (given.smiles, given.target)):
        if not rows or column not in rows[0]:
            parser.error(f"{given.table} has no column {column}")

    molecules, targets = [], []
    for number, row in enumerate(rows, start=1):
        molecule = read(row[given.smiles], given.hydrogens)
        if molecule is None:
            print(f"molecule {number} left out: {row[given.smiles]!r}", file=sys.stderr)
            continue
        molecules.append(molecule)
        targets.append(row[given.target] if given.target else "0")

    found = {atom.GetSymbol() for molecule in molecules for atom in molecule.GetAtoms()}
    atoms = given.atoms.split(",") if given.atoms else sorted(found)
    if found - set(atoms):
        parser.error(f"no column for {', '.join(sorted(found - set(atoms)))}: see --atoms")
    arrays = to_arrays(molecules, atoms)
    if given.target:
        arrays["targets"] = to_targets(targets)
    np.savez_compressed(given.graphs, **arrays)
    print(f"{len(molecules)} molecules, --atoms {','.join(atoms)}")


def read(smiles: str, hydrogens: bool) -> Chem.Mol | None:
    """None if it is no molecule."""
    rdBase.DisableLog("rdApp.*")
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() == 0:
        return None
    return Chem.AddHs(molecule) if hydrogens else molecule


def to_arrays(molecules: Sequence[Chem.Mol], atoms: Sequence[str]) -> dict[str, Any]:
    """As `lpgnn.save_graphs` has it: one-hot atoms, and one-hot bonds on both of their arcs."""
    ends, bonds = [], []
    graph_ptr = np.cumsum([0, *(molecule.GetNumAtoms() for molecule in molecules)])
    for molecule, first in zip(molecules, graph_ptr[:-1], strict=True):
        for bond in molecule.GetBonds():
            u, v = first + bond.GetBeginAtomIdx(), first + bond.GetEndAtomIdx()
            ends += [(u, v), (v, u)]
            bonds += [[str(bond.GetBondType()) == kind for kind in BONDS]] * 2
    symbols = [atom.GetSymbol() for molecule in molecules for atom in molecule.GetAtoms()]
    source, target = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return {
        "features": np.array(symbols)[:, None] == np.array(atoms),
        "source": source,
        "target": target,
        "arc_labels": np.array(bonds, dtype=bool).reshape(-1, len(BONDS)),
        "graph_ptr": graph_ptr,
    }


def to_targets(words: Sequence[str]) -> np.ndarray:
    """Classes if all are whole numbers."""
    if all(word.strip().isdecimal() for word in words):
        return np.array(words, dtype=np.int64)
    return np.array(words, dtype=np.float32)


if __name__ == "__main__":
    main()
