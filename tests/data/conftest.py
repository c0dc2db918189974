"""Small TU datasets on disk, configs by name, and a cache that no other test has touched."""

from __future__ import annotations

import dataclasses
import functools
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lpgnn_cli.config.compose import compose
from lpgnn_cli.config.dataset import DatasetConfig, TuConfig
from lpgnn_cli.config.root import TrainConfig

# Two classes of two graphs; graph 2 has no arcs, node 3 of graph 1 is isolated; the arc 1-2 has
# another label in each direction.
TINY = {
    "A": "1, 2\n2, 1\n6, 7\n7, 6\n8, 9\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n3\n4\n4\n",
    "graph_labels": "1\n-1\n1\n-1\n",
    "node_labels": "0\n2\n5\n0\n0\n2\n5\n5\n0\n",
    "node_attributes": "\n".join(f"{k}.5, {-k}e-1" for k in range(9)) + "\n",
    "edge_labels": "3\n4\n3\n3\n4\n",
    "edge_attributes": "0.1\n0.2\n0.3\n0.4\n0.5\n",
}


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("LPGNN_CACHE", str(folder))
    return folder


@pytest.fixture
def shared_data() -> Path:
    """The folder with the real datasets."""
    folder = os.environ.get("LPGNN_DATA")
    if not folder or not (Path(folder) / "NCI1.zip").is_file():
        pytest.skip("the real datasets are not here: set LPGNN_DATA to a folder with NCI1.zip")
    return Path(folder)


@pytest.fixture
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPGNN_DATA", raising=False)


@pytest.fixture(scope="session")
def train_config() -> Callable[..., TrainConfig]:
    """The config of `lpgnn train` with these overrides; without recipe; once for each."""
    return functools.cache(lambda *overrides: compose("train", ["recipe=none", *overrides]))


@pytest.fixture(scope="session")
def dataset_config(train_config: Callable[..., TrainConfig]) -> Callable[..., DatasetConfig]:
    """The config of a dataset by name, with changes."""

    def make(name: str, /, **changes: Any) -> DatasetConfig:
        return dataclasses.replace(train_config(f"dataset={name}").dataset, **changes)

    return make


@pytest.fixture
def tiny_files() -> dict[str, str]:
    return dict(TINY)


@pytest.fixture
def tiny_config() -> Callable[[Path], TuConfig]:
    """`dataset=tu` with the path of the dataset TINY."""

    def make(path: Path, features: str = "auto", positional: int = 0) -> TuConfig:
        return TuConfig(
            name="TINY",
            features=features,
            positional=positional,
            sign_flips=True,
            path=str(path),
            embedded=False,
        )

    return make


@pytest.fixture
def write_tu(tmp_path: Path) -> Callable[..., Path]:
    """Write TINY, with some of its files replaced (or left out: None), as a folder or a zip."""

    def write(zipped: bool = False, name: str = "TINY", **changes: str | None) -> Path:
        files = {k: v for k, v in {**TINY, **changes}.items() if v is not None}
        if zipped:
            path = tmp_path / f"{name}.zip"
            with zipfile.ZipFile(path, "w") as archive:
                for suffix, text in files.items():
                    archive.writestr(f"{name}/{name}_{suffix}.txt", text)
            return path
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for suffix, text in files.items():
            (folder / f"{name}_{suffix}.txt").write_text(text, encoding="utf-8")
        return folder

    return write
