"""The TU reader: what a good file gives, and the sentence that each bad one gets."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from lpgnn_cli.config.dataset import TuConfig
from lpgnn_cli.config.root import TrainConfig
from lpgnn_cli.data import load_dataset, storage
from lpgnn_cli.errors import UserError
from lpgnn_cli.model.transitions import build_transition

Write = Callable[..., Path]
Config = Callable[..., TuConfig]


@pytest.mark.parametrize("zipped", [False, True])
def test_tiny_dataset(write_tu: Write, tiny_config: Config, zipped: bool) -> None:
    dataset = load_dataset(tiny_config(write_tu(zipped=zipped)), None, 0)
    batch = dataset.batch
    assert (batch.num_graphs, batch.num_nodes, batch.num_arcs, batch.num_classes) == (4, 9, 5, 2)
    assert batch.graph_ptr.tolist() == [0, 3, 5, 7, 9]
    assert batch.targets.tolist() == [1, 0, 1, 0]
    assert batch.features.argmax(1).tolist() == [0, 1, 2, 0, 0, 1, 2, 2, 0]
    assert batch.features.sum(1).tolist() == [1.0] * 9
    pairs = list(zip(batch.arcs.source.tolist(), batch.arcs.target.tolist(), strict=True))
    assert pairs == [(1, 0), (0, 1), (6, 5), (5, 6), (7, 8)]
    third = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])
    assert torch.equal(batch.arc_in[:, 2], third[[1, 0, 3, 2, 4]])
    assert batch.arc_in[:, :2].argmax(1).tolist() == [1, 0, 0, 0, 1]
    assert torch.equal(batch.arc_out[:4], batch.arc_in[[1, 0, 3, 2]])
    assert batch.arc_out[4].tolist() == [0.0, 0.0, 0.0], "the arc 8, 9 has no way back"


def test_feature_choices(write_tu: Write, tiny_config: Config) -> None:
    path = write_tu()

    def load(features: str) -> tuple[torch.Tensor, list[bool]]:
        dataset = load_dataset(tiny_config(path, features), None, 0)
        return dataset.batch.features, dataset.continuous.tolist()

    labels, marks = load("labels")
    assert torch.equal(labels, load("auto")[0])
    assert marks == [False] * 3
    attributes, marks = load("attributes")
    assert attributes[2].tolist() == pytest.approx([2.5, -0.2])
    assert marks == [True] * 2
    both, marks = load("labels+attributes")
    assert torch.equal(both, torch.cat([labels, attributes], dim=1))
    assert marks == [False] * 3 + [True] * 2
    degree, marks = load("degree")
    assert degree.argmax(1).tolist() == [1, 1, 0, 0, 0, 1, 1, 0, 1]
    assert marks == [False] * 2
    assert load("constant")[0].tolist() == [[1.0]] * 9
    with pytest.raises(UserError, match=r"features=rbf is for the datasets subgraph and clique"):
        load("rbf")


def test_auto_features_fall_back(write_tu: Write, tiny_config: Config) -> None:
    path = write_tu(node_labels=None)
    assert load_dataset(tiny_config(path), None, 0).continuous.tolist() == [True, True]
    with pytest.raises(UserError, match=r"features=labels is unavailable: TINY has no node"):
        load_dataset(tiny_config(path, "labels"), None, 0)


def test_degrees_where_there_is_nothing_else(write_tu: Write, tiny_config: Config) -> None:
    path = write_tu(node_labels=None, node_attributes=None)
    assert load_dataset(tiny_config(path), None, 0).batch.features.shape == (9, 2)


def test_the_vocabulary_of_another_dataset(write_tu: Write, tiny_config: Config) -> None:
    known = load_dataset(tiny_config(write_tu()), None, 0)
    fewer = tiny_config(write_tu(node_labels="5\n" * 9, edge_labels="4\n" * 5))
    again = load_dataset(fewer, None, 0, known.vocabulary).batch
    assert again.features.argmax(1).tolist() == [2] * 9
    assert again.features.shape == known.batch.features.shape
    assert again.arc_in[:, :2].argmax(1).tolist() == [1] * 5
    strange = tiny_config(write_tu(node_labels="0\n" * 8 + "7\n"))
    with pytest.raises(UserError, match="node label 7 was not there when the network was trained"):
        load_dataset(strange, None, 0, known.vocabulary)


def test_windows_line_ends_and_no_last_line_end(write_tu: Write, tiny_config: Config) -> None:
    path = write_tu()
    expected = load_dataset(tiny_config(path), None, 0).fingerprint()
    for file in path.iterdir():
        file.write_bytes(file.read_bytes().rstrip().replace(b"\n", b"\r\n"))
    assert load_dataset(tiny_config(path), None, 0).fingerprint() == expected


def test_all_graphs_without_arcs(write_tu: Write, tiny_config: Config) -> None:
    path = write_tu(A="", edge_labels="", edge_attributes=None)
    batch = load_dataset(tiny_config(path, positional=2), None, 0).batch
    assert batch.num_arcs == 0
    assert batch.features[:, -2:].tolist() == [[0.0, 0.0]] * 9


BAD: dict[str, tuple[dict[str, str | None], str]] = {
    "empty file of graphs": (
        {"graph_indicator": "", "graph_labels": ""},
        "TINY_graph_indicator.txt, line 1: TINY has no graphs",
    ),
    "node id too large": (
        {"A": "1, 2\n2, 1\n6, 10\n7, 6\n8, 9\n"},
        "TINY_A.txt, line 3: the arc 6, 10 names a node that is not among 1 to 9",
    ),
    "node id zero": ({"A": "0, 1\n"}, "TINY_A.txt, line 1: the arc 0, 1 names a node"),
    "arc across graphs": (
        {"A": "1, 2\n3, 4\n"},
        "TINY_A.txt, line 2: the arc 3, 4 joins graph 1 and graph 2",
    ),
    "graph id gap": (
        {"graph_indicator": "1\n1\n1\n3\n3\n3\n3\n4\n4\n"},
        "TINY_graph_indicator.txt, line 4: graph id 3 follows 1",
    ),
    "graph ids from zero": (
        {"graph_indicator": "0\n1\n1\n2\n2\n3\n3\n4\n4\n"},
        "TINY_graph_indicator.txt, line 1: graph id 0 follows 0, but ids start at 1",
    ),
    "graph ids go back": (
        {"graph_indicator": "1\n1\n2\n1\n2\n3\n3\n4\n4\n"},
        "TINY_graph_indicator.txt, line 4: graph id 1 follows 2",
    ),
    "empty last graph": (
        {"graph_labels": "1\n-1\n1\n-1\n1\n"},
        "TINY_graph_labels.txt, line 5: graph 5 is empty",
    ),
    "graph without a class": (
        {"graph_labels": "1\n-1\n1\n"},
        "TINY_graph_indicator.txt, line 8: graph 4 has no class",
    ),
    "class with one member": (
        {"graph_labels": "1\n1\n7\n1\n"},
        "TINY_graph_labels.txt, line 3: class 7 has one member",
    ),
    "one class": (
        {"graph_labels": "1\n1\n1\n1\n"},
        "TINY_graph_labels.txt, line 1: all graphs are of class 1",
    ),
    "node labels cut off": (
        {"node_labels": "0\n2\n5\n0\n"},
        "TINY_node_labels.txt, line 5: the file has 4 lines, but there are 9 nodes",
    ),
    "too many node labels": (
        {"node_labels": "0\n" * 12},
        "TINY_node_labels.txt, line 10: the file has 12 lines, but there are 9 nodes",
    ),
    "attributes cut off": (
        {"node_attributes": "1.0\n2.0\n"},
        "TINY_node_attributes.txt, line 3: the file has 2 lines, but there are 9 nodes",
    ),
    "edge labels cut off": (
        {"edge_labels": "3\n"},
        "TINY_edge_labels.txt, line 2: the file has 1 lines, but there are 5 arcs",
    ),
    "edge attributes missing": (
        {"edge_attributes": ""},
        "TINY_edge_attributes.txt, line 1: the file has 0 lines, but there are 5 arcs",
    ),
    "a file that ends within a line": (
        {"A": "1, 2\n2, 1\n6,"},
        "TINY_A.txt, line 3: expected 2 integers, found '6,'",
    ),
    "an arc with one end": (
        {"A": "1, 2\n2\n6, 7\n"},
        "TINY_A.txt, line 2: expected 2 integers, found '2'",
    ),
    "arcs with three ends": (
        {"A": "1, 2, 1\n2, 1, 1\n"},
        "TINY_A.txt, line 1: expected 2 integers, found '1, 2, 1'",
    ),
    "a blank line": (
        {"node_labels": "0\n2\n\n5\n0\n0\n2\n5\n5\n0\n"},
        "TINY_node_labels.txt, line 3: expected 1 integer, found ''",
    ),
    "a blank line in place of a value": (
        {"node_labels": "0\n2\n\n0\n0\n2\n5\n5\n0\n0\n"},
        "TINY_node_labels.txt, line 3: expected 1 integer, found ''",
    ),
    "an integer as a float": (
        {"graph_labels": "1\n-1\n1.0\n-1\n"},
        "TINY_graph_labels.txt, line 3: expected 1 integer, found '1.0'",
    ),
    "an integer beyond 64 bits": (
        {"node_labels": "0\n" * 8 + "9" * 30 + "\n"},
        f"TINY_node_labels.txt, line 9: expected 1 integer, found '{'9' * 30}'",
    ),
    "underscores in numbers": (
        {"node_labels": "0\n" * 8 + "1_0\n"},
        "TINY_node_labels.txt, line 9: expected 1 integer, found '1_0'",
    ),
    "text among the attributes": (
        {"node_attributes": "1.0\n" * 4 + "one\n" + "1.0\n" * 4},
        "TINY_node_attributes.txt, line 5: expected 1 number, found 'one'",
    ),
    "an attribute too few": (
        {"node_attributes": "1, 2\n" * 4 + "1\n" + "1, 2\n" * 4},
        "TINY_node_attributes.txt, line 5: expected 2 numbers, found '1'",
    ),
    "NaN among the attributes": (
        {"node_attributes": "1.0\n" * 6 + "nan\n" + "1.0\n" * 2},
        "TINY_node_attributes.txt, line 7: nan is not a finite number",
    ),
    "infinity among the attributes": (
        {"edge_attributes": "1.0\n" * 4 + "-inf\n"},
        "TINY_edge_attributes.txt, line 5: -inf is not a finite number",
    ),
    "too large for single precision": (
        {"node_attributes": "1.0\n" * 8 + "1e300\n"},
        "TINY_node_attributes.txt, line 9: 1e\\+300 is not a finite number of single precision",
    ),
    "binary rubbish": (
        {"node_labels": "0\n\x00\x07\n"},
        "TINY_node_labels.txt, line 2: expected 1 integer",
    ),
    "no classes": ({"graph_labels": None}, "has no TINY_graph_labels.txt"),
    "no arcs file": ({"A": None}, "has no TINY_A.txt"),
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("case", BAD)
def test_bad_input(write_tu: Write, tiny_config: Config, case: str, zipped: bool) -> None:
    changes, sentence = BAD[case]
    path = write_tu(zipped=zipped, **changes)
    with pytest.raises(UserError, match=sentence) as raised:
        load_dataset(tiny_config(path), None, 0)
    text = str(raised.value)
    assert text.startswith(str(path)), "the sentence names the zip or the folder"
    assert text.count("\n") == 0
    assert text.endswith(".")


def test_a_long_line_is_cut_in_the_sentence(write_tu: Write, tiny_config: Config) -> None:
    path = write_tu(node_labels="x" * 10_000)
    with pytest.raises(UserError, match=r"found 'x{57}\.\.\.'"):
        load_dataset(tiny_config(path), None, 0)


def test_the_cache_gives_the_same_dataset(
    write_tu: Write, tiny_config: Config, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tu()
    first = load_dataset(tiny_config(path, "labels+attributes"), None, 0).fingerprint()
    parsed = list((fresh_cache / "parsed").iterdir())
    assert [p.name.startswith("TINY-") for p in parsed] == [True]

    def parse_again(*_: object) -> None:
        raise AssertionError("the cache was not used")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "read_tables", parse_again)
        again = load_dataset(tiny_config(path, "labels+attributes"), None, 0)
        assert again.fingerprint() == first
        write_tu(node_labels="1\n" * 9)
        with pytest.raises(AssertionError, match="the cache was not used"):
            load_dataset(tiny_config(path), None, 0)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no more", b"not a zip at all"])
def test_a_damaged_cache_is_replaced(
    write_tu: Write, tiny_config: Config, fresh_cache: Path, damage: bytes
) -> None:
    path = write_tu()
    first = load_dataset(tiny_config(path), None, 0).fingerprint()
    (parsed,) = (fresh_cache / "parsed").iterdir()
    parsed.write_bytes(damage)
    assert load_dataset(tiny_config(path), None, 0).fingerprint() == first
    assert parsed.stat().st_size > 100


def test_a_cache_that_cannot_be_written_is_done_without(
    write_tu: Write, tiny_config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("LPGNN_CACHE", str(tmp_path / "file"))
    assert load_dataset(tiny_config(write_tu()), None, 0).batch.num_graphs == 4


def test_nci1_is_read_fast(
    shared_data: Path,
    train_config: Callable[..., TrainConfig],
    fresh_cache: Path,
    request: pytest.FixtureRequest,
) -> None:
    config = train_config("dataset=nci1").dataset
    request.addfinalizer(functools.partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(1)  # threads that wait for each other count as CPU time
    start = time.process_time()
    first = load_dataset(config, str(shared_data), 0)
    parsed = time.process_time()
    again = load_dataset(config, str(shared_data), 0)
    cached = time.process_time()
    assert list((fresh_cache / "parsed").glob("NCI1-*.npz"))
    assert again.fingerprint() == first.fingerprint()
    assert parsed - start < 4.0
    assert cached - parsed < 1.0


AGGREGATORS = ["sum", "avg", "gin", "gcn", "sage", "gat", "selection", "median", "none"]


@pytest.mark.parametrize("arcs", ["some", "none"])
@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_isolated_nodes_work_through_every_aggregator(
    write_tu: Write,
    tiny_config: Config,
    train_config: Callable[..., TrainConfig],
    aggregator: str,
    arcs: str,
) -> None:
    changes = {"A": "", "edge_labels": "", "edge_attributes": ""} if arcs == "none" else {}
    batch = load_dataset(tiny_config(write_tu(**changes)), None, 0).batch
    torch.manual_seed(0)
    transition = build_transition(
        train_config(f"aggregator={aggregator}").aggregator,
        state_size=4,
        label_size=batch.features.shape[1],
        arc_size=batch.arc_in.shape[1],
        out_size=4,
    ).eval()
    state = torch.randn(batch.num_nodes, 4, requires_grad=True)
    together = transition(state, batch.features, batch)
    assert together.shape == (9, 4)
    assert together.isfinite().all()
    together.sum().backward()
    assert state.grad is not None
    assert state.grad.isfinite().all()
    # The graph without arcs gets the same on its own.
    alone = batch.subset(torch.tensor([1]))
    torch.testing.assert_close(transition(state[3:5], alone.features, alone), together[3:5])


def test_integer_tables_are_stored_small() -> None:
    embedded = storage.read_embedded("MUTAG").to_arrays()
    assert embedded["source"].dtype == np.uint16
    assert embedded["edge_labels"].dtype == np.uint8
    with pytest.raises(UserError, match=r"The package has no copy of NCI1, only of MUTAG"):
        storage.read_embedded("NCI1")
