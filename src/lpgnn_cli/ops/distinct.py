"""Matrices with few distinct rows, such as one-hot labels: computed with once per distinct row.

Shapes: N rows, K distinct ones among them, L and H columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from lpgnn_cli.ops import kernels
from lpgnn_cli.ops.linear import linear

MOST = 2048
SAMPLE = 4096
# Combinations of kinds that are looked for, and those of them that may be there: a table of so many
# rows stays in a cache.
MOST_COMBINATIONS, MOST_TOGETHER = 1 << 20, 256


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The matrix (N, L) whose row n is `rows[kind[n]]`: K rows, N kinds."""

    rows: Tensor
    kind: Tensor

    @classmethod
    def of(cls, matrix_NL: Tensor) -> DistinctRows | None:
        """None where the rows are too many to be worth it, or not on a CPU, or none at all."""
        if not matrix_NL.is_cpu or matrix_NL.numel() == 0:
            return None
        found = cls._of(matrix_NL[:SAMPLE])
        return found if found is None or len(matrix_NL) <= SAMPLE else cls._of(matrix_NL)

    @classmethod
    def _of(cls, matrix_NL: Tensor) -> DistinctRows | None:
        # One number per row that equal rows share; whether only they do is checked in the end.
        scales = torch.linspace(1.0, 2.0, matrix_NL.shape[1], dtype=torch.float64).sqrt()
        numbers_K, kind_N = torch.unique(matrix_NL.double() @ scales, return_inverse=True)
        if numbers_K.numel() > min(MOST, len(matrix_NL) // 4):
            return None
        example_K = torch.zeros_like(numbers_K, dtype=torch.int64)
        example_K[kind_N] = torch.arange(kind_N.numel())
        rows_KL = matrix_NL[example_K]
        return cls(rows_KL, kind_N) if torch.equal(rows_KL[kind_N], matrix_NL) else None

    @classmethod
    def side_by_side(cls, parts: Sequence[DistinctRows]) -> DistinctRows | None:
        """The columns of all parts, whose rows are as many; None where too many kinds meet."""
        counts = [len(part.rows) for part in parts]
        if prod(counts) > MOST_COMBINATIONS:
            return None
        met_N = torch.zeros_like(parts[0].kind)
        for part, count in zip(parts, counts, strict=True):
            met_N = met_N * count + part.kind
        is_there = torch.zeros(prod(counts), dtype=torch.bool)
        is_there[met_N] = True
        met_K = is_there.nonzero().squeeze(1)
        if met_K.numel() > MOST_TOGETHER:
            return None
        place = torch.zeros(len(is_there), dtype=torch.int64)
        place[met_K] = torch.arange(met_K.numel())
        # One row in which each kind is met, from which the columns of all parts are read.
        example_K = torch.zeros_like(met_K)
        example_K[place[met_N]] = torch.arange(met_N.numel())
        rows = [part.rows[part.kind[example_K]] for part in parts]
        return cls(torch.cat(rows, dim=1), place[met_N])

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Tensor | slice) -> DistinctRows:
        """Some rows of the matrix."""
        taken = self.kind[rows] if isinstance(rows, slice) else self.kind.index_select(0, rows)
        return DistinctRows(self.rows, taken)

    def gather(self, values_KH: Tensor) -> Tensor:
        """(N, H): every row gets the values of its kind."""
        return linear(
            values_KH,
            lambda values: values.index_select(0, self.kind),
            lambda gradient: kernels.sum_rows(gradient, self._by_kind, self._ptr),
        )

    @cached_property
    def _by_kind(self) -> Tensor:
        return self.kind.argsort(stable=True)

    @cached_property
    def _ptr(self) -> Tensor:
        counts = torch.bincount(self.kind, minlength=len(self.rows))
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
