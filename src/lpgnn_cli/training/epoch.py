"""One pass over the training graphs, all at once or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lpgnn_cli.data.blocks import Blocks
from lpgnn_cli.data.part import Part
from lpgnn_cli.metrics import LAGRANGIAN, TRAIN, of_all
from lpgnn_cli.propagation import Propagation
from lpgnn_cli.training.evaluation import RunningViolation, measure


def train_epoch(
    propagation: Propagation,
    epoch: int,
    part: Part,
    batch_graphs: int | None = None,
    order: torch.Generator | None = None,
    batch_nodes: int | None = None,
) -> dict[str, Tensor]:
    """Train on every graph of the part once; what is logged of it.

    Each graph is measured in the step that trains on it. The Lagrangian of an epoch with several
    steps is their mean.
    """
    scores, targets, lagrangians = [], [], []
    violations = RunningViolation()
    for piece, graphs in _pieces(part, batch_graphs, batch_nodes, order):
        step = propagation.train_step(epoch, piece, graphs)
        scores.append(piece.select(step.scores))
        targets.append(piece.targets)
        lagrangians.append(step.lagrangian)
        violations.add(step.residuals)
    propagation.finish_epoch(epoch)
    values = {
        **measure(_joined(scores), _joined(targets), part.judging),
        **violations.values(),
        LAGRANGIAN.name: of_all(lagrangians, torch.mean),
        **propagation.training_metrics(),
    }
    return {f"{TRAIN}/{name}": value for name, value in values.items()}


def _joined(rows: Sequence[Tensor]) -> Tensor:
    return rows[0] if len(rows) == 1 else torch.cat(list(rows))


def _pieces(
    part: Part,
    batch_graphs: int | None,
    batch_nodes: int | None,
    order: torch.Generator | None,
) -> Iterator[tuple[Part, Tensor | None]]:
    """The part as it is, or some graphs or nodes of it after others in a random order."""
    if batch_nodes is not None:
        for block in Blocks(part.batch, batch_nodes).shuffled(order):
            yield part.within(block), None
        return
    count = part.batch.num_graphs
    if batch_graphs is None or batch_graphs >= count:
        yield part, None
        return
    graphs = torch.randperm(count, generator=order).to(part.batch.graph_ptr.device)
    # All graphs are put in order at once, and batches are ranges of them: thirty operations fewer
    # for each.
    yield from zip(part.subset(graphs).spans(batch_graphs), graphs.split(batch_graphs), strict=True)
