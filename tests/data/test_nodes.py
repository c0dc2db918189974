"""Files of nodes: read, looked up, downloaded, and refused in one sentence."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lpgnn_cli.cli import main
from lpgnn_cli.config.dataset import DatasetConfig
from lpgnn_cli.data import load_dataset, make_splits, npz
from lpgnn_cli.data.datasets.nodes import read_nodes
from lpgnn_cli.errors import UserError

Write = Callable[..., Path]
Configs = Callable[..., DatasetConfig]

NODES = 12
PART = np.arange(NODES) % 3


def plain() -> dict[str, Any]:
    """A ring of ten nodes beside two that have no edge; two splits."""
    ring = np.arange(NODES - 2)
    return {
        "node_features": np.random.RandomState(0).randn(NODES, 4).astype(np.float32),
        "node_labels": np.arange(NODES) // 6,
        "edges": np.stack([ring, (ring + 1) % len(ring)], axis=1),
        "train_masks": np.stack([PART == 0, PART == 1]),
        "val_masks": np.stack([PART == 1, PART == 2]),
        "test_masks": np.stack([PART == 2, PART == 0]),
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A file of nodes with some arrays changed, or left out: None."""

    def make(**changes: Any) -> Path:
        path = tmp_path / "mine.npz"
        arrays = {k: v for k, v in (plain() | changes).items() if v is not None}
        np.savez(path, **arrays)
        return path

    return make


def test_edges_go_both_ways_and_masks_are_folds(
    write: Write, train_config: Callable[..., Any]
) -> None:
    path = write()
    batch, masks = read_nodes(path, directed=False)
    assert (batch.num_nodes, batch.num_arcs, batch.num_classes) == (NODES, 20, 2)
    assert masks is not None
    one_way, _ = read_nodes(path, directed=True)
    assert one_way.num_arcs == 10
    assert one_way.arcs.in_degree[:3].tolist() == [1, 1, 1]

    config = train_config("dataset=nodes", f"dataset.path={path}")
    dataset = load_dataset(config.dataset, None, 0)
    splits = make_splits(config.protocol, dataset, 0)
    assert [s.train.tolist() for s in splits] == [[0, 3, 6, 9], [1, 4, 7, 10]]
    assert [s.test.tolist() for s in splits] == [[2, 5, 8, 11], [0, 3, 6, 9]]
    assert splits[0].val is not None
    assert splits[0].val.tolist() == [1, 4, 7, 10]


def test_edges_that_are_there_twice_count_once(write: Write) -> None:
    edges = np.array([[0, 1], [1, 0], [0, 1], [2, 2]])
    path = write(edges=edges)
    both, _ = read_nodes(path, directed=False)
    assert sorted(zip(both.arcs.source.tolist(), both.arcs.target.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
        (2, 2),
    ]
    assert read_nodes(path, directed=True)[0].num_arcs == 3


def test_a_vector_is_one_split_and_no_edges_are_fine(write: Write) -> None:
    masks = {f"{part}_masks": k == PART for k, part in enumerate(("train", "val", "test"))}
    batch, found = read_nodes(
        write(edges=np.zeros((0, 2), dtype=np.int64), **masks), directed=False
    )
    assert batch.num_arcs == 0
    assert found is not None
    assert found.train.shape == (1, NODES)


def test_rows_can_be_normalised(write: Write, dataset_config: Configs) -> None:
    words = np.zeros((NODES, 4), dtype=np.int8)
    words[:, 0] = 1
    words[:6, 1] = 3
    config = dataset_config("nodes", path=str(write(node_features=words)), normalise_rows=True)
    dataset = load_dataset(config, None, 0)
    assert dataset.batch.features[0].tolist() == [0.25, 0.75, 0, 0]
    assert not dataset.continuous.any(), "what was normalised is not standardised as well"


def test_masks_are_drawn_on_demand(write: Write, train_config: Callable[..., Any]) -> None:
    path = write(train_masks=None, val_masks=None, test_masks=None)
    words = ["dataset=nodes", f"dataset.path={path}"]
    dataset = load_dataset(train_config(*words).dataset, None, 0)
    with pytest.raises(UserError, match=r"no masks .* draw them by protocol.validation"):
        make_splits(train_config(*words).protocol, dataset, 0)
    shares = ["protocol.validation=0.3", "protocol.test=0.3", "protocol.folds=3"]
    splits = make_splits(train_config(*words, *shares).protocol, dataset, 0)
    assert len(splits) == 3
    for split in splits:
        assert split.val is not None
        together = torch.cat([split.train, split.val, split.test])
        assert sorted(together.tolist()) == list(range(NODES))
        assert set(dataset.batch.targets[split.val].tolist()) == {0, 1}
    assert splits[0].test.tolist() != splits[1].test.tolist()


def test_more_folds_than_splits(write: Write, train_config: Callable[..., Any]) -> None:
    config = train_config("dataset=nodes", f"dataset.path={write()}", "protocol.folds=3")
    dataset = load_dataset(config.dataset, None, 0)
    with pytest.raises(UserError, match="has 2 splits of its nodes"):
        make_splits(config.protocol, dataset, 0)


NOT_A_NUMBER = np.full((NODES, 4), np.nan, dtype=np.float32)
TWICE = np.ones((2, NODES), dtype=bool)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"node_features": None}, "lacks node_features"),
        ({"node_labels": None, "edges": None}, "lacks node_labels and edges"),
        ({"node_features": np.zeros(NODES)}, "node_features must be a matrix"),
        ({"node_features": NOT_A_NUMBER}, "a value that is no finite number"),
        ({"node_features": np.array([["a"]] * NODES)}, "node_features must be numbers"),
        ({"node_features": np.zeros((0, 4))}, "there is no node"),
        ({"node_labels": np.zeros(5, dtype=int)}, "node_labels has the shape (5,)"),
        ({"node_labels": np.arange(NODES) - 1}, "a negative class"),
        ({"node_labels": np.array(["a"] * NODES)}, "node_labels must be numbers"),
        ({"node_labels": np.zeros(NODES, dtype=int)}, "one class only"),
        ({"node_labels": np.full(NODES, 10**12)}, "has the class 1000000000000"),
        ({"edges": plain()["edges"].T}, "edges has the shape (2, 10)"),
        ({"edges": plain()["edges"] + 5}, "edges has the node 12"),
        ({"edges": plain()["edges"] - 1}, "edges has the node -1"),
        ({"edges": plain()["edges"] * 1.0}, "edges must be whole numbers"),
        ({"test_masks": None}, "lacks test_masks"),
        ({"val_masks": np.ones((2, NODES))}, "val_masks must be true or false"),
        ({"val_masks": np.ones((2, 5), dtype=bool)}, "val_masks has the shape (2, 5)"),
        ({"val_masks": TWICE[:1]}, "the masks must be as many for each part"),
        ({"val_masks": TWICE}, "node 0 is in more than one part of split 0"),
        ({"train_masks": ~TWICE}, "train_masks has no node in split 0"),
        ({"edges": np.array([[object(), 1]])}, "edges.npy holds Python objects"),
    ],
)
def test_bad_files_are_one_sentence(
    changes: dict[str, Any], sentence: str, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(**changes)
    code = main(["train", "dataset=nodes", f"dataset.path={path}", "tracking=none"])
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert said.err.startswith(f"lpgnn: {path}")
    assert sentence in said.err
    assert said.err.count("\n") == 1


def test_files_that_are_no_archives(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        read_nodes(tmp_path / "none.npz", directed=False)
    with pytest.raises(UserError, match="is a folder"):
        read_nodes(tmp_path, directed=False)
    path = write()
    content = path.read_bytes()
    for broken in (b"", b"no archive", content[: len(content) // 2]):
        path.write_bytes(broken)
        with pytest.raises(UserError, match="is not an npz file of plain arrays"):
            read_nodes(path, directed=False)
    middle = len(content) // 3
    path.write_bytes(content[:middle] + bytes(40) + content[middle + 40 :])
    with pytest.raises(UserError, match=r"mine\.npz"):
        read_nodes(path, directed=False)
    monkeypatch.setattr(npz, "MAX_BYTES", 100)
    with pytest.raises(UserError, match="is refused: it would unpack to"):
        read_nodes(write(), directed=False)


def test_a_header_cannot_ask_for_memory(write: Write, tmp_path: Path) -> None:
    """An array that says it is far larger than its member is refused before it gets room."""
    with zipfile.ZipFile(write()) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    features = members["node_features.npy"]
    honest = b"(12, 4), }          "
    assert honest in features
    wide = features.replace(honest, b"(12000000000, 4), } ")
    members["node_features.npy"] = wide
    path = tmp_path / "lying.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(UserError, match="says it has another size than it has"):
        read_nodes(path, directed=False)


def test_looked_up_by_name(
    write: Write, dataset_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = write().read_bytes()
    root = tmp_path / "data"
    config = dataset_config("nodes", name="village")
    monkeypatch.setenv("LPGNN_DATA", str(root))
    with pytest.raises(UserError, match=r"village is not on disk: put village.npz into .*node"):
        load_dataset(config, None, 0)
    for place in (tmp_path / "node", root, root / "node"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "village.npz").write_bytes(content)
        assert load_dataset(config, None, 0).batch.num_nodes == NODES
        (place / "village.npz").unlink()
    with pytest.raises(UserError, match="is not the name of a dataset"):
        load_dataset(dataset_config("nodes", name="../village"), None, 0)


def test_a_file_with_a_known_name_must_be_that_dataset(
    write: Write, dataset_config: Configs, tmp_path: Path
) -> None:
    write().rename(tmp_path / "cora.npz")
    with pytest.raises(UserError, match="is not the published cora: it has 12 nodes, not 2,708"):
        load_dataset(dataset_config("cora"), str(tmp_path), 0)


def test_downloads_are_held_to_their_hash(
    write: Write, dataset_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pooch

    content = write().read_bytes()

    def retrieve(url: str, known_hash: None, fname: str, path: Path, downloader: object) -> str:
        asked.append(url)
        (path / fname).write_bytes(content)
        return str(path / fname)

    asked: list[str] = []
    monkeypatch.setattr(pooch, "retrieve", retrieve)
    monkeypatch.setattr("lpgnn_cli.data.download.reachable", lambda url: True)
    monkeypatch.setenv("LPGNN_NODES_URL", "http://mirror/files/")
    root = tmp_path / "data"
    with pytest.raises(UserError, match="is not the published chameleon: its sha256 is"):
        load_dataset(dataset_config("chameleon"), str(root), 0)
    assert asked == ["http://mirror/files/chameleon_filtered.npz"]
    assert list((root / "node").iterdir()) == [], "nothing is kept"

    from lpgnn_cli.data import node_files

    own = node_files.Published("village.npz", hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(node_files.PUBLISHED, "village", own)
    config = dataset_config("nodes", name="village")
    for _ in range(2):
        assert load_dataset(config, str(root), 0).batch.num_nodes == NODES
    assert asked[1:] == ["http://mirror/files/village.npz"]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("cora", (140, 500, 1000)),
        ("citeseer", (120, 500, 1000)),
        ("minesweeper", (5000, 2500, 2500)),
        ("chameleon", (409, 287, 194)),
    ],
)
def test_the_published_datasets(
    name: str, sizes: tuple[int, ...], shared_data: Path, train_config: Callable[..., Any]
) -> None:
    if not (shared_data.parent / "node").is_dir():
        pytest.skip("the files of nodes are not beside LPGNN_DATA")
    config = train_config(f"dataset={name}")
    dataset = load_dataset(config.dataset, None, 0)
    split = make_splits(config.protocol, dataset, 0)[0]
    assert split.val is not None
    assert (len(split.train), len(split.val), len(split.test)) == sizes


def test_a_run_on_a_file(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPGNN_RUNS", str(tmp_path / "runs"))
    words = ["epochs=4", "threads=1", "protocol.workers=1", "protocol.seeds=2", "inference.steps=5"]
    sober = ["tracking=none", "figures=false", "quiet=true", "device=cpu"]
    assert main(["train", "dataset=nodes", f"dataset.path={write()}", *words, *sober]) == 0
    (run,) = (tmp_path / "runs" / "train").glob("*/*")
    names = ["fold-00-seed-0", "fold-00-seed-1", "fold-01-seed-0", "fold-01-seed-1"]
    assert sorted(unit.name for unit in (run / "units").iterdir()) == names
    assert '"validation metric"' in (run / "units" / names[0] / "result.json").read_text()
    assert main(["eval", f"run={run}", "tracking=none", "threads=1"]) == 0
    again = ["dataset=nodes", f"dataset.path={write()}"]
    assert main(["eval", f"run={run}", *again, "tracking=none", "threads=1"]) == 0
