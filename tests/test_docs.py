"""The documentation does what it says: links lead somewhere, and the quickstart is followed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from lpgnn_cli.config.compose import load, make_loader, without_hydra
from lpgnn_cli.version import __version__

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for address in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        target, _, anchor = address.partition("#")
        if "://" in target:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), address
        if anchor and file.suffix == ".md":
            assert anchor in headings(file), address


def headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_a_dataset_of_ones_own_is_trained_as_its_kind(tmp_path: Path) -> None:
    page = (DOCS / "data.md").read_text(encoding="utf-8")
    files = dict(re.findall(r"<!-- file: (\S+) -->\n```yaml\n(.*?)```", page, re.DOTALL))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    composed = [
        without_hydra(load(make_loader(folder), "train", words))
        for folder, words in (
            (str(tmp_path), ["dataset=beads"]),
            (None, ["dataset=graphs", "dataset.path=necklaces.npz"]),
        )
    ]
    assert composed[0] == composed[1]


def test_a_recipe_of_ones_own_comes_before_that_of_the_kind(tmp_path: Path) -> None:
    for name, text in {
        "dataset/beads.yaml": "defaults: [graphs, _self_]\npath: x.npz\n",
        "dataset/bare.yaml": "path: x.npz\n",
        "dataset/torn.yaml": "defaults: [graphs\n",
        "recipe/lagrangian/beads.yaml": "# @package _global_\nepochs: 7\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    loader = make_loader(str(tmp_path))
    assert load(loader, "train", ["dataset=beads"]).epochs == 7
    ordinary = load(loader, "train", ["dataset=beads", "propagation=layers", "aggregator=gin"])
    assert ordinary.optim.batch_graphs == 32
    assert load(loader, "train", ["dataset=beads", "recipe=none"]).epochs == 500


def test_the_index_has_every_page() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w.-]+\.md)\)", index))
    assert linked == {page.name for page in DOCS.glob("*.md")} - {"README.md"}


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Tiezzi",
        "Marra",
        "Melacci",
        "Maggini",
    ]


@pytest.mark.slow
@pytest.mark.ci
def test_the_quickstart_word_by_word(tmp_path: Path) -> None:
    """In a clean folder, with nothing but the environment that it is read in."""
    page = DOCS / "quickstart.md"
    (script,) = blocks(page, "python")
    (tmp_path / "necklaces.py").write_text(script, encoding="utf-8")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LPGNN_", "MLFLOW_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    commands = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert [shlex.split(line)[1] for line in commands[1:]] == [
        *("train", "train", "diff", "diff", "sweep", "runs", "predict")
    ]
    for command in commands:
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env={**kept, "PATH": path, "LPGNN_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert "B minus A" in (tmp_path / "diff.html").read_text(encoding="utf-8")
    rows = (tmp_path / "classes.csv").read_text().splitlines()[1:]
    found = np.array([int(row.split(",")[1]) for row in rows])
    assert (found == np.loadtxt(tmp_path / "answers.txt", dtype=int)).mean() > 0.9
