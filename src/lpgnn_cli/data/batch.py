"""All graphs of a dataset as one disconnected union in tensors.

Shape suffixes: N nodes, A arcs, G graphs, F features, D arc labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise, starmap
from typing import Literal

import torch
from torch import Tensor

from lpgnn_cli.metrics import CLASSES, LABELS, task_of
from lpgnn_cli.ops import segment_max, sum_incoming, sum_neighbours, sum_sources
from lpgnn_cli.ops.arcs import Arcs
from lpgnn_cli.ops.distinct import DistinctRows
from lpgnn_cli.ops.sparse import SparseRows

TargetLevel = Literal["graph", "node"]
POWER_ITERATIONS = 60
# Smaller matrices are multiplied as they are in less time than rows are gathered.
WORTH_A_TABLE = 200_000
# One row per node, the same whichever graphs lie beside its own: once they are known of all graphs,
# an epoch of mini-batches takes them along.
PER_NODE = ("degree", "divisor", "inverse_norm", "neighbour_sums", "arc_sums", "arc_maxima")


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """A union of graphs; graph g has the nodes `graph_ptr[g]:graph_ptr[g + 1]`.

    Arc a goes from u = `arcs.source[a]` to v = `arcs.target[a]`: `arc_in[a]` is its own label
    l_(u,v) and `arc_out[a]` that of the opposite arc l_(v,u), zeros where there is none. Both
    directions of an undirected edge are arcs. Targets are one class per graph or per node; or a row
    of 0 and 1 where they may have several labels, or of numbers, with `num_classes` columns.
    """

    features: Tensor
    arcs: Arcs
    arc_in: Tensor
    arc_out: Tensor
    graph_ptr: Tensor
    targets: Tensor
    target_level: TargetLevel
    num_classes: int

    @classmethod
    def from_arcs(
        cls,
        *,
        features: Tensor,
        source: Tensor,
        target: Tensor,
        arc_labels: Tensor | None = None,
        graph_ptr: Tensor,
        targets: Tensor,
        target_level: TargetLevel,
        num_classes: int,
    ) -> GraphBatch:
        """A batch from arcs in any order; parallel arcs keep the order in which they are given."""
        num_nodes = features.shape[0]
        _require(source.shape == target.shape, "arcs must have a source and a target each")
        _require_nodes(source, num_nodes)
        _require_nodes(target, num_nodes)
        order = torch.argsort(target, stable=True)
        source, target = source[order], target[order]
        if arc_labels is None:
            arc_labels = features.new_zeros(source.numel(), 0)
        arc_in = arc_labels[order]
        batch = cls(
            features=features,
            arcs=Arcs.from_sorted(source, target, num_nodes),
            arc_in=arc_in,
            arc_out=_opposite_labels(source, target, arc_in, num_nodes),
            graph_ptr=graph_ptr,
            targets=targets,
            target_level=target_level,
            num_classes=num_classes,
        )
        batch.validate()
        return batch

    @classmethod
    def union(cls, batches: list[GraphBatch]) -> GraphBatch:
        """The graphs of all batches, in order; the inverse of taking subsets."""
        first = batches[0]
        sizes = torch.tensor([b.num_nodes for b in batches], device=first.graph_ptr.device)
        offsets = (sizes.cumsum(0) - sizes).tolist()
        pairs = list(zip(batches, offsets, strict=True))
        starts = [b.graph_ptr[:-1] + offset for b, offset in pairs]
        total = first.graph_ptr.new_tensor([sum(b.num_nodes for b in batches)])
        # Node offsets rise from batch to batch, so the arcs stay sorted by target.
        return cls(
            features=torch.cat([b.features for b in batches]),
            arcs=Arcs.from_sorted(
                torch.cat([b.arcs.source + offset for b, offset in pairs]),
                torch.cat([b.arcs.target + offset for b, offset in pairs]),
                int(total),
            ),
            arc_in=torch.cat([b.arc_in for b in batches]),
            arc_out=torch.cat([b.arc_out for b in batches]),
            graph_ptr=torch.cat([*starts, total]),
            targets=torch.cat([b.targets for b in batches]),
            target_level=first.target_level,
            num_classes=first.num_classes,
        )

    @property
    def task(self) -> str:
        """Whether targets are classes, labels or numbers."""
        return task_of(self.targets)

    @property
    def num_nodes(self) -> int:
        return self.features.shape[0]

    @property
    def num_graphs(self) -> int:
        return self.graph_ptr.numel() - 1

    @property
    def num_arcs(self) -> int:
        return self.arcs.num_arcs

    @cached_property
    def graph_of_node(self) -> Tensor:
        """(N,) the graph that each node belongs to."""
        graphs = torch.arange(self.num_graphs, device=self.graph_ptr.device)
        return torch.repeat_interleave(graphs, self.graph_ptr.diff(), output_size=self.num_nodes)

    @cached_property
    def degree(self) -> Tensor:
        """(N, 1) how many arcs come in, in the precision of the features."""
        return self.arcs.in_degree.unsqueeze(1).to(self.features.dtype)

    @cached_property
    def divisor(self) -> Tensor:
        """(N, 1) the same for means: 1 where no arc comes in."""
        return self.degree.clamp(min=1)

    @cached_property
    def distinct_features(self) -> DistinctRows | None:
        """The features, if they are large and have few distinct rows."""
        large = self.features.numel() >= WORTH_A_TABLE
        return DistinctRows.of(self.features) if large else None

    def as_distinct(self, label_NL: Tensor) -> Tensor | DistinctRows:
        """The labels of nodes, by their distinct rows if they are the features and these few."""
        # A gradient is due to every node, not to one of those that look alike.
        shared = label_NL is self.features and not label_NL.requires_grad
        distinct = self.distinct_features if shared else None
        return label_NL if distinct is None else distinct

    def own(self, rows: Tensor) -> Tensor:
        """Of one row per node, those of the nodes whose states are looked for: all of them, but in
        a block, whose other nodes are there as neighbours alone."""
        return self.arcs.own(rows)

    def own_of(self, labels: Tensor | DistinctRows) -> Tensor | DistinctRows:
        """The same of labels that may be known by their distinct rows."""
        if isinstance(labels, Tensor):
            return self.own(labels)
        few = self.arcs.num_nodes
        return labels if len(labels) == few else labels.take(slice(few))

    @cached_property
    def own_labels(self) -> Tensor | SparseRows:
        """The features, for products that are taken in every epoch."""
        return _for_products(self.own(self.features))

    @cached_property
    def neighbour_sums(self) -> Tensor:
        """Their sums over neighbours."""
        return sum_neighbours(self.features, self.arcs)

    @cached_property
    def arc_sums(self) -> Tensor:
        """(N, 2 D) the sums over the arcs into a node of [l_(v,u), l_(u,v)]."""
        return sum_incoming(torch.cat([self.arc_out, self.arc_in], dim=1), self.arcs)

    @cached_property
    def arc_maxima(self) -> Tensor:
        """(N, 2 D) their maxima."""
        labels = torch.cat([self.arc_out, self.arc_in], dim=1)
        return segment_max(labels, self.arcs.ptr, self.arcs.target)

    @cached_property
    def surroundings(self) -> list[Tensor | SparseRows]:
        """All that labels say of a node and around it, for products: its own, and the sums over
        neighbours and over arcs; side by side where they are small."""
        own, sums = self.own_labels, _for_products(self.neighbour_sums)
        if isinstance(own, Tensor) and isinstance(sums, Tensor):
            return [torch.cat([own, sums, self.arc_sums], dim=1)]
        return [own, sums, self.arc_sums]

    @cached_property
    def distinct_arc_labels(self) -> DistinctRows | None:
        """The rows [l_(v,u), l_(u,v)], if few of them are distinct."""
        return DistinctRows.of(torch.cat([self.arc_out, self.arc_in], dim=1))

    @cached_property
    def alike_arcs(self) -> DistinctRows | None:
        """All labels at an arc, as the rows [l_u, l_(v,u), l_(u,v), l_v], if few are distinct."""
        nodes = self.distinct_features or DistinctRows.of(self.features)
        own = self.distinct_arc_labels
        if nodes is None or (own is None and self.arc_in.numel() > 0):
            return None
        ends = [nodes.take(self.arcs.source), nodes.take(self.arcs.make_target())]
        return DistinctRows.side_by_side([ends[0], *([own] if own else []), ends[1]])

    def as_alike_arcs(self, label_NL: Tensor) -> DistinctRows | None:
        """The same with these labels of nodes; None unless they are the features and constant."""
        shared = label_NL is self.features and not label_NL.requires_grad
        return self.alike_arcs if shared else None

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether every arc has its opposite."""
        if self.features.is_meta:
            return False
        # Seen at once for most graphs that are not: what follows sorts lists of arcs.
        if not torch.equal(self.arcs.in_degree, self.arcs.out_degree):
            return False
        source, target, n = self.arcs.source, self.arcs.make_target(), self.num_nodes
        ahead, back = source * n + target, target * n + source
        return torch.equal(ahead.sort().values, back.sort().values)

    @cached_property
    def spectral_norm(self) -> Tensor:
        """(G,) an upper bound of |A|, the largest stretch of a vector by a graph's adjacency.

        For a symmetric A it is the spectral radius. Collatz and Wielandt: for B = AᵀA and any
        positive vector x, |A|² is at most the largest (Bx)_v / x_v; power iteration makes it tight.
        """
        of_sources = self.features.new_ones(self.num_nodes, 1)
        highest = self.features.new_zeros(self.num_graphs)
        for _ in range(POWER_ITERATIONS):
            moved = sum_sources(sum_neighbours(of_sources, self.arcs), self.arcs) + of_sources
            ratio = (moved / of_sources).squeeze(1)
            highest = torch.zeros_like(highest).scatter_reduce(0, self.graph_of_node, ratio, "amax")
            of_sources = moved / highest[self.graph_of_node, None]
            of_sources = of_sources.clamp(min=1e-6)
        # The identity that was added keeps the vector positive and adds 1 to the ratio.
        return (highest - 1).clamp(min=0).sqrt()

    @cached_property
    def inverse_norm(self) -> Tensor:
        """(N, 1) 1 / |A| of the graph that a node belongs to; 1 where there are no arcs."""
        norm = self.spectral_norm
        inverse = torch.where(norm > 0, 1 / norm.clamp(min=1e-12), torch.ones_like(norm))
        return inverse[self.graph_of_node, None]

    def nodes_of(self, graphs: Tensor) -> Tensor:
        """The nodes of these graphs, graph after graph."""
        return ranges(self.graph_ptr[graphs], self.graph_ptr[graphs + 1])

    def subset(self, graphs: Tensor) -> GraphBatch:
        """The graphs with these indices, in this order."""
        nodes = self.nodes_of(graphs)
        # Arcs are sorted by target and stay inside a graph: those of a graph lie side by side.
        first_arc = self.arcs.ptr[self.graph_ptr]
        arcs = ranges(first_arc[graphs], first_arc[graphs + 1])
        graph_ptr = _after_each(self.graph_ptr.diff()[graphs])
        arc_counts = first_arc[graphs + 1] - first_arc[graphs]
        node_shift = torch.repeat_interleave(graph_ptr[:-1] - self.graph_ptr[graphs], arc_counts)
        part = GraphBatch(
            features=self.features.index_select(0, nodes),
            arcs=Arcs(
                source=self.arcs.source.index_select(0, arcs) + node_shift,
                ptr=_after_each(self.arcs.in_degree.index_select(0, nodes)),
                source_ptr=_after_each(self.arcs.out_degree.index_select(0, nodes)),
            ),
            arc_in=self.arc_in.index_select(0, arcs),
            arc_out=self.arc_out.index_select(0, arcs),
            graph_ptr=graph_ptr,
            targets=self.targets.index_select(0, graphs if self.target_level == "graph" else nodes),
            target_level=self.target_level,
            num_classes=self.num_classes,
        )
        # So they do sorted by source, and need not be sorted again.
        arc_shift = arc_counts.cumsum(0) - arc_counts - first_arc[graphs]
        by_source = self.arcs.by_source.index_select(0, arcs)
        target_by_source = self.arcs.target_by_source.index_select(0, arcs)
        vars(part.arcs)["by_source"] = by_source.add_(arc_shift.repeat_interleave(arc_counts))
        vars(part.arcs)["target_by_source"] = target_by_source.add_(node_shift)
        # Known already, and an epoch of mini-batches would look for them again.
        features, labels = self.distinct_features, self.distinct_arc_labels
        vars(part)["distinct_features"] = features and features.take(nodes)
        vars(part)["distinct_arc_labels"] = labels and labels.take(arcs)
        vars(part)["alike_arcs"] = self.alike_arcs and self.alike_arcs.take(arcs)
        if "spectral_norm" in vars(self):
            vars(part)["spectral_norm"] = self.spectral_norm[graphs]
        for name in PER_NODE:
            if name in vars(self):
                vars(part)[name] = vars(self)[name].index_select(0, nodes)
        return part

    def spans(self, size: int) -> Iterator[GraphBatch]:
        """So many graphs that lie side by side after others: views, with numbers of their own."""
        bounds = [*range(0, self.num_graphs, size), self.num_graphs]
        nodes = self.graph_ptr[bounds]
        node_bounds, arc_bounds = nodes.tolist(), self.arcs.ptr[nodes].tolist()
        for graphs, rows, arcs in zip(
            *(starmap(slice, pairwise(b)) for b in (bounds, node_bounds, arc_bounds)), strict=True
        ):
            yield self._span(graphs, rows, arcs)

    def _span(self, graphs: slice, nodes: slice, arcs: slice) -> GraphBatch:
        span = GraphBatch(
            features=self.features[nodes],
            arcs=self.arcs.span(nodes, arcs),
            arc_in=self.arc_in[arcs],
            arc_out=self.arc_out[arcs],
            graph_ptr=self.graph_ptr[graphs.start : graphs.stop + 1] - nodes.start,
            targets=self.targets[graphs if self.target_level == "graph" else nodes],
            target_level=self.target_level,
            num_classes=self.num_classes,
        )
        features, labels = self.distinct_features, self.distinct_arc_labels
        vars(span)["distinct_features"] = features and features.take(nodes)
        vars(span)["distinct_arc_labels"] = labels and labels.take(arcs)
        vars(span)["alike_arcs"] = self.alike_arcs and self.alike_arcs.take(arcs)
        vars(span)["graph_of_node"] = self.graph_of_node[nodes] - graphs.start
        if "spectral_norm" in vars(self):
            vars(span)["spectral_norm"] = self.spectral_norm[graphs]
        for name in PER_NODE:
            if name in vars(self):
                vars(span)[name] = vars(self)[name][nodes]
        return span

    def to(self, device: torch.device | str) -> GraphBatch:
        return replace(
            self,
            features=self.features.to(device),
            arcs=self.arcs.to(device),
            arc_in=self.arc_in.to(device),
            arc_out=self.arc_out.to(device),
            graph_ptr=self.graph_ptr.to(device),
            targets=self.targets.to(device),
        )

    def both_ways(self) -> GraphBatch:
        """The same graphs with an arc back, without a label, for every arc that has none."""
        if self.is_symmetric:
            return self
        arcs, n = self.arcs, self.num_nodes
        back = arcs.target * n + arcs.source
        missing = ~torch.isin(back, arcs.source * n + arcs.target)
        nothing = self.arc_in.new_zeros(int(missing.sum()), self.arc_in.shape[1])
        return GraphBatch.from_arcs(
            features=self.features,
            source=torch.cat([arcs.source, arcs.target[missing]]),
            target=torch.cat([arcs.target, arcs.source[missing]]),
            arc_labels=torch.cat([self.arc_in, nothing]),
            graph_ptr=self.graph_ptr,
            targets=self.targets,
            target_level=self.target_level,
            num_classes=self.num_classes,
        )

    def with_features(self, features: Tensor) -> GraphBatch:
        """The same graphs with other node features."""
        assert features.shape[0] == self.num_nodes, "one row of features per node"
        changed = replace(self, features=features)
        vars(changed)["distinct_arc_labels"] = self.distinct_arc_labels
        if "spectral_norm" in vars(self):
            vars(changed)["spectral_norm"] = self.spectral_norm
        return changed

    def with_targets(self, targets: Tensor, level: TargetLevel, num_classes: int) -> GraphBatch:
        """The same graphs with other classes to learn."""
        return replace(self, targets=targets, target_level=level, num_classes=num_classes)

    def share_memory(self) -> GraphBatch:
        """Move the storage to shared memory, in place, for worker processes."""
        own = [getattr(self, f.name) for f in fields(self)]
        arcs = [getattr(self.arcs, f.name) for f in fields(self.arcs)]
        for tensor in (t for t in (*own, *arcs) if isinstance(t, Tensor)):
            share: Callable[[], object] = tensor.share_memory_
            share()
        return self

    def validate(self) -> None:
        """Raise ValueError, naming the first broken invariant, if this is not a union of graphs."""
        n, a, g = self.num_nodes, self.num_arcs, self.num_graphs
        arcs, ptr = self.arcs, self.graph_ptr
        _require(self.features.ndim == 2, "features must be a matrix")
        _require(self.features.is_floating_point(), "features must be floating point numbers")
        _require(bool(self.features.isfinite().all()), "features must be finite")
        _require(ptr.ndim == 1 and ptr.numel() > 0, "graph_ptr must be a vector")
        _require(int(ptr[0]) == 0 and int(ptr[-1]) == n, "graph_ptr must run from 0 to N")
        _require(bool((ptr.diff() > 0).all()), "every graph must have a node")
        _require(arcs.num_nodes == n, "arcs must be those of N nodes")
        _require(
            int(arcs.ptr[0]) == 0 and int(arcs.ptr[-1]) == a and bool((arcs.in_degree >= 0).all()),
            "ptr must count the arcs into each node",
        )
        for labels in (self.arc_in, self.arc_out):
            _require(
                labels.shape[0] == a and labels.ndim == 2, "arc labels must be one row per arc"
            )
        _require(self.arc_in.shape == self.arc_out.shape, "arc labels must be equally long")
        if a:
            _require_nodes(arcs.source, n)
            graph = self.graph_of_node
            _require(
                bool((graph[arcs.source] == graph[arcs.make_target()]).all()),
                "arcs must stay inside their graph",
            )
        degrees = torch.bincount(arcs.source, minlength=n)
        _require(
            torch.equal(arcs.source_ptr.diff(), degrees),
            "source_ptr must count the arcs out of nodes",
        )
        size = g if self.target_level == "graph" else n
        self._validate_targets(size)

    def _validate_targets(self, size: int) -> None:
        targets, task = self.targets, self.task
        _require(len(targets) == size, f"targets must be one per {self.target_level}")
        if task == CLASSES:
            _require(
                size == 0 or 0 <= int(targets.min()) <= int(targets.max()) < self.num_classes,
                "targets must be classes 0 to num_classes - 1",
            )
            return
        _require(targets.shape == (size, self.num_classes), "targets must be rows of one length")
        if task == LABELS:
            _require(bool(((targets == 0) | (targets == 1)).all()), "labels must be 0 or 1")
        else:
            _require(bool(targets.isfinite().all()), "targets must be finite")

    def fingerprint(self) -> str:
        """sha256 over names, types, shapes and little-endian bytes: the same on every platform."""
        digest = hashlib.sha256(f"{self.target_level} {self.num_classes}\n".encode())
        for name, tensor in self._tensors().items():
            hash_tensor(digest, name, tensor)
        return digest.hexdigest()

    def _tensors(self) -> dict[str, Tensor]:
        """The content by its names, in a fixed order."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        arcs = {
            "source": self.arcs.source,
            "target": self.arcs.make_target(),
            "ptr": self.arcs.ptr,
            "by_source": self.arcs.make_by_source(),
            "source_ptr": self.arcs.source_ptr,
        }
        tensors = {k: v for k, v in own.items() if isinstance(v, Tensor)}
        return tensors | {f"arcs.{name}": tensor for name, tensor in arcs.items()}


def hash_tensor(digest: hashlib._Hash, name: str, tensor: Tensor) -> None:
    """Feed one named tensor to a digest in a form that no platform changes."""
    array = tensor.detach().cpu().contiguous().numpy()
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    digest.update(f"{name} {array.dtype.name} {list(array.shape)}\n".encode())
    digest.update(little.tobytes())


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ValueError(f"not a valid GraphBatch: {sentence}")


def _require_nodes(ends: Tensor, num_nodes: int) -> None:
    inside = (ends >= 0) & (ends < num_nodes)
    _require(bool(inside.all()), "arcs must join nodes 0 to N - 1")


def _after_each(counts: Tensor) -> Tensor:
    """0, and the sum of the counts up to each."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def ranges(start: Tensor, end: Tensor) -> Tensor:
    """The integers of [start[0], end[0]), then those of [start[1], end[1]), and so on."""
    lengths = end - start
    before = lengths.cumsum(0) - lengths
    total = int(lengths.sum())
    steps = torch.arange(total, device=start.device)
    return steps + torch.repeat_interleave(start - before, lengths, output_size=total)


def _opposite_labels(source: Tensor, target: Tensor, labels_AD: Tensor, num_nodes: int) -> Tensor:
    """The label of the first arc (v, u) for each arc (u, v), zeros where there is none."""
    if labels_AD.numel() == 0:
        return torch.zeros_like(labels_AD)
    key = source * num_nodes + target
    opposite = target * num_nodes + source
    sorted_key, order = torch.sort(key, stable=True)
    place = torch.searchsorted(sorted_key, opposite).clamp_(max=key.numel() - 1)
    found = sorted_key[place] == opposite
    return torch.where(found[:, None], labels_AD[order[place]], torch.zeros_like(labels_AD))


def _for_products(labels_NL: Tensor) -> Tensor | SparseRows:
    sparse = SparseRows.of(labels_NL) if labels_NL.numel() >= WORTH_A_TABLE else None
    return labels_NL if sparse is None else sparse
