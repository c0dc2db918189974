"""A pass over the training graphs that is made before the step that needs it.

Evaluation goes by statistics that are taken after a step, under the weights and at the states that
it left. That pass is the one with which the next step begins: kept, it need not be made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from lpgnn_cli.data.batch import GraphBatch


@dataclass(frozen=True)
class PassAhead:
    """f_a(x) of some graphs, with all that going back through it needs."""

    transits: list[Tensor]
    batch: GraphBatch
    # torch counts what is done to a tensor in place.
    versions: list[int]

    @classmethod
    def of(
        cls, transits: list[Tensor], batch: GraphBatch, depends_on: Iterable[Tensor]
    ) -> PassAhead:
        return cls(transits, batch, _versions(depends_on))

    def holds(self, batch: GraphBatch, depends_on: Iterable[Tensor]) -> bool:
        """Whether the same pass over these graphs would give the same."""
        return batch is self.batch and _versions(depends_on) == self.versions


def _versions(tensors: Iterable[Tensor]) -> list[int]:
    return [tensor._version for tensor in tensors]
