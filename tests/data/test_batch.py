"""GraphBatch: a union is exactly its graphs, whatever they are."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lpgnn_cli.config.compose import compose
from lpgnn_cli.data import GraphBatch, load_dataset
from lpgnn_cli.data.batch import PER_NODE, TargetLevel
from lpgnn_cli.ops.arcs import Arcs

PROPERTY = settings(max_examples=60, deadline=None)


@st.composite
def graphs(draw: st.DrawFn, level: TargetLevel | None = None) -> GraphBatch:
    """Any union: isolated nodes, no arcs, loops, one-way and parallel arcs, F = 0 and D = 0."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    source, target = [], []
    for first, size in zip(ptr.tolist(), sizes, strict=False):
        arcs = draw(st.integers(0, 8))
        source.append(first + torch.randint(0, size, (arcs,), generator=random))
        target.append(first + torch.randint(0, size, (arcs,), generator=random))
    num_arcs = sum(s.numel() for s in source)
    levels: tuple[TargetLevel, ...] = ("graph", "node")
    at: TargetLevel = draw(st.sampled_from(levels)) if level is None else level
    items = len(sizes) if at == "graph" else int(ptr[-1])
    return GraphBatch.from_arcs(
        features=torch.randn(int(ptr[-1]), draw(st.integers(0, 3)), generator=random),
        source=torch.cat(source),
        target=torch.cat(target),
        arc_labels=torch.randn(num_arcs, draw(st.integers(0, 2)), generator=random),
        graph_ptr=ptr,
        targets=torch.randint(0, 3, (items,), generator=random),
        target_level=at,
        num_classes=3,
    )


def assert_same(left: GraphBatch, right: GraphBatch) -> None:
    for field in dataclasses.fields(GraphBatch):
        a, b = getattr(left, field.name), getattr(right, field.name)
        if isinstance(a, Arcs):
            for part in dataclasses.fields(Arcs):
                assert torch.equal(getattr(a, part.name), getattr(b, part.name)), part.name
        elif isinstance(a, torch.Tensor):
            assert torch.equal(a, b), field.name
        else:
            assert a == b, field.name


@PROPERTY
@given(graphs())
def test_a_union_is_the_list_of_its_graphs(batch: GraphBatch) -> None:
    singles = [batch.subset(torch.tensor([g])) for g in range(batch.num_graphs)]
    for single in singles:
        single.validate()
    assert_same(GraphBatch.union(singles), batch)
    assert GraphBatch.union(singles).fingerprint() == batch.fingerprint()


@PROPERTY
@given(graphs(), st.data())
def test_a_subset_is_those_graphs_loaded_separately(batch: GraphBatch, data: st.DataObject) -> None:
    indices = data.draw(st.permutations(range(batch.num_graphs)))
    chosen = indices[: data.draw(st.integers(1, batch.num_graphs))]
    subset = batch.subset(torch.tensor(chosen))
    subset.validate()
    assert_same(subset, GraphBatch.union([batch.subset(torch.tensor([g])) for g in chosen]))


@PROPERTY
@given(graphs(), st.integers(1, 6))
def test_spans_are_the_graphs_side_by_side(batch: GraphBatch, size: int) -> None:
    batch.spectral_norm.square_()  # known to the whole: what a span has is taken from there
    indices = torch.arange(batch.num_graphs).split(size)
    for span, chosen in zip(batch.spans(size), indices, strict=True):
        span.validate()
        expected = batch.subset(chosen)
        assert_same(span, expected)
        for name in ("graph_of_node", "degree", "divisor", "spectral_norm", "inverse_norm"):
            assert torch.equal(getattr(span, name), getattr(expected, name)), name
        for name in ("target_by_source", "in_degree", "out_degree"):
            assert torch.equal(getattr(span.arcs, name), getattr(expected.arcs, name)), name


@PROPERTY
@given(graphs(), st.data())
def test_what_is_known_of_nodes_goes_along_with_their_graphs(
    batch: GraphBatch, data: st.DataObject
) -> None:
    chosen = torch.tensor(data.draw(st.permutations(range(batch.num_graphs))))
    afresh = batch.subset(chosen)
    expected = {name: getattr(afresh, name) for name in PER_NODE}
    for name in PER_NODE:
        getattr(batch, name)
    taken = batch.subset(chosen)
    for name in PER_NODE:
        assert name in vars(taken), name
        torch.testing.assert_close(getattr(taken, name), expected[name], msg=name)
    spans = list(taken.spans(2))
    for name in PER_NODE:
        assert all(name in vars(span) for span in spans), name
        assert torch.equal(torch.cat([getattr(s, name) for s in spans]), getattr(taken, name))


@PROPERTY
@given(graphs(level="node"), st.data())
def test_permuting_nodes_changes_nothing_but_order(batch: GraphBatch, data: st.DataObject) -> None:
    moved = torch.arange(batch.num_nodes)
    for first, last in zip(batch.graph_ptr.tolist(), batch.graph_ptr.tolist()[1:], strict=False):
        moved[first:last] = torch.tensor(data.draw(st.permutations(range(first, last))))
    back = torch.argsort(moved)
    permuted = GraphBatch.from_arcs(
        features=batch.features[back],
        source=moved[batch.arcs.source],
        target=moved[batch.arcs.target],
        arc_labels=batch.arc_in,
        graph_ptr=batch.graph_ptr,
        targets=batch.targets[back],
        target_level="node",
        num_classes=3,
    )
    assert torch.equal(permuted.graph_of_node, batch.graph_of_node)
    for node in range(batch.num_nodes):
        assert neighbourhood(permuted, int(moved[node])) == neighbourhood(batch, node)


def neighbourhood(batch: GraphBatch, node: int) -> list[object]:
    """The node and what reaches it, without node numbers and without an order."""
    own = [batch.features[node].tolist(), batch.targets[node].tolist()]
    incoming = [
        (batch.features[u].tolist(), batch.targets[u].tolist(), batch.arc_in[a].tolist())
        for a in range(int(batch.arcs.ptr[node]), int(batch.arcs.ptr[node + 1]))
        for u in [int(batch.arcs.source[a])]
    ]
    return [own, sorted(incoming)]


@PROPERTY
@given(graphs())
def test_the_opposite_label_is_that_of_the_arc_back(batch: GraphBatch) -> None:
    arcs = list(zip(batch.arcs.source.tolist(), batch.arcs.target.tolist(), strict=True))
    first = {arc: a for a, arc in reversed(list(enumerate(arcs)))}
    for a, (u, v) in enumerate(arcs):
        back = first.get((v, u))
        expected = torch.zeros_like(batch.arc_in[a]) if back is None else batch.arc_in[back]
        assert torch.equal(batch.arc_out[a], expected)


@PROPERTY
@given(graphs())
def test_arcs_by_source_and_pointers_agree(batch: GraphBatch) -> None:
    arcs = batch.arcs
    for node in range(batch.num_nodes):
        out = arcs.by_source[arcs.source_ptr[node] : arcs.source_ptr[node + 1]]
        assert out.tolist() == (arcs.source == node).nonzero().flatten().tolist()
        into = (arcs.target == node).nonzero().flatten()
        assert into.tolist() == list(range(int(arcs.ptr[node]), int(arcs.ptr[node + 1])))


def path_of_three() -> GraphBatch:
    return GraphBatch.from_arcs(
        features=torch.arange(5.0)[:, None],
        source=torch.tensor([0, 1, 1, 2]),
        target=torch.tensor([1, 0, 2, 1]),
        arc_labels=torch.tensor([[1.0], [2.0], [3.0], [4.0]]),
        graph_ptr=torch.tensor([0, 3, 5]),
        targets=torch.tensor([0, 1]),
        target_level="graph",
        num_classes=2,
    )


def test_labels_in_both_directions() -> None:
    batch = path_of_three()
    assert batch.arcs.target.tolist() == [0, 1, 1, 2]
    assert batch.arcs.source.tolist() == [1, 0, 2, 1]
    assert batch.arc_in.flatten().tolist() == [2.0, 1.0, 4.0, 3.0]
    assert batch.arc_out.flatten().tolist() == [1.0, 2.0, 3.0, 4.0]
    assert batch.graph_of_node.tolist() == [0, 0, 0, 1, 1]
    assert batch.nodes_of(torch.tensor([1, 0])).tolist() == [3, 4, 0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"graph_ptr": torch.tensor([0, 3, 4])}, "graph_ptr must run from 0 to N"),
        ({"graph_ptr": torch.tensor([0, 5, 5])}, "every graph must have a node"),
        ({"graph_ptr": torch.tensor([0, 1, 5])}, "arcs must stay inside their graph"),
        ({"targets": torch.tensor([0, 2])}, "targets must be classes"),
        ({"targets": torch.tensor([0])}, "targets must be one per graph"),
        ({"features": torch.full((5, 1), torch.nan)}, "features must be finite"),
        ({"features": torch.ones(5)}, "features must be a matrix"),
        ({"features": torch.ones(5, 1).long()}, "floating point"),
        ({"arc_in": torch.zeros(3, 1)}, "one row per arc"),
        ({"arc_in": torch.zeros(4, 2)}, "equally long"),
    ],
)
def test_validate_names_what_is_broken(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        dataclasses.replace(path_of_three(), **changes).validate()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"source": torch.tensor([1, 0, 9, 1])}, "nodes 0 to N - 1"),
        ({"ptr": torch.tensor([0, 2, 1, 4, 4, 4])}, "ptr must count"),
        ({"ptr": torch.tensor([0, 2, 3, 3, 3, 3])}, "ptr must count"),
        ({"ptr": torch.tensor([1, 2, 3, 4, 4, 4])}, "ptr must count"),
        ({"ptr": torch.tensor([0, 1, 2, 3, 4, 4])}, "arcs must stay inside their graph"),
        ({"source_ptr": torch.tensor([0, 2, 3, 4, 4, 4])}, "source_ptr must count"),
        ({"ptr": torch.tensor([0, 2, 3])}, "arcs must be those of N nodes"),
    ],
)
def test_validate_checks_the_arcs(changes: dict[str, torch.Tensor], sentence: str) -> None:
    batch = path_of_three()
    broken = dataclasses.replace(batch, arcs=dataclasses.replace(batch.arcs, **changes))
    with pytest.raises(ValueError, match=sentence):
        broken.validate()


def test_the_fingerprint_is_that_of_the_content() -> None:
    batch = path_of_three()
    known = batch.fingerprint()
    assert known == "314db0a49faeb3204aa0e390aa03c85b71ba0e5b4012cd13cfdb65b5fb000155"
    # Lookups are cached on the object; they are no content.
    assert batch.graph_of_node.numel() == 5
    assert pickle.loads(pickle.dumps(batch)).fingerprint() == known
    for changed in (
        batch.with_features(batch.features + 1e-6),
        batch.with_features(batch.features.double()),
        dataclasses.replace(batch, targets=torch.tensor([1, 0])),
        dataclasses.replace(batch, num_classes=3),
        batch.subset(torch.tensor([1, 0])),
    ):
        assert changed.fingerprint() != known


def test_lists_of_arcs_are_kept_for_those_who_ask_again() -> None:
    batch = path_of_three()
    batch.fingerprint()
    assert batch.is_symmetric
    assert not {"target", "by_source", "target_by_source"} & vars(batch.arcs).keys()
    assert batch.arcs.target is batch.arcs.target


def test_moves_and_sharing_keep_the_content() -> None:
    batch = path_of_three()
    moved = batch.to("meta")
    assert {t.device.type for t in (moved.features, moved.arcs.ptr, moved.targets)} == {"meta"}
    known = batch.fingerprint()
    assert batch.share_memory() is batch
    assert batch.features.is_shared()
    assert batch.arcs.source_ptr.is_shared()
    assert batch.fingerprint() == known


@pytest.fixture
def large_batch(monkeypatch: pytest.MonkeyPatch) -> GraphBatch:
    """MUTAG, taken for large."""
    monkeypatch.setattr("lpgnn_cli.data.batch.WORTH_A_TABLE", 0)
    return load_dataset(compose("train", ["dataset=mutag"]).dataset, None, seed=0).batch


def test_a_subset_knows_its_distinct_rows(large_batch: GraphBatch) -> None:
    part = large_batch.subset(torch.tensor([7, 3, 100]))
    features, labels = part.distinct_features, part.distinct_arc_labels
    assert features is not None
    assert labels is not None
    assert torch.equal(features.rows[features.kind], part.features)
    both = torch.cat([part.arc_out, part.arc_in], dim=1)
    assert torch.equal(labels.rows[labels.kind], both)
    alike = part.alike_arcs
    assert alike is not None
    ends = part.features[part.arcs.source], part.features[part.arcs.target]
    assert torch.equal(alike.rows[alike.kind], torch.cat([ends[0], both, ends[1]], dim=1))
    (span,) = part.spans(3)
    assert span.alike_arcs is not None
    assert torch.equal(span.alike_arcs.kind, alike.kind)


def test_other_features_have_other_distinct_rows(large_batch: GraphBatch) -> None:
    assert large_batch.distinct_features is not None
    changed = large_batch.with_features(torch.rand_like(large_batch.features))
    assert changed.distinct_features is None
    assert changed.alike_arcs is None
    assert large_batch.as_alike_arcs(large_batch.features) is large_batch.alike_arcs
    assert large_batch.as_alike_arcs(large_batch.features.clone()) is None
    labels = large_batch.features.clone().requires_grad_()
    assert large_batch.with_features(labels).as_alike_arcs(labels) is None, "one gradient per node"
    assert changed.distinct_arc_labels is large_batch.distinct_arc_labels
