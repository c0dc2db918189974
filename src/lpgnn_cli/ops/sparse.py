"""Matrices that are mostly zero, such as the words of papers: products go by what is there.

Shapes: N rows, L and H columns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from lpgnn_cli.ops.linear import linear

# A dense product is as fast where more than this share of the entries is not zero.
MOST = 0.1


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A matrix (N, L) and its transpose, by their rows."""

    matrix: Tensor
    transposed: Tensor

    @classmethod
    def of(cls, matrix_NL: Tensor) -> Self | None:
        """None where too much is there to be worth it, or not on a CPU."""
        if not matrix_NL.is_cpu or matrix_NL.numel() == 0:
            return None
        if int(torch.count_nonzero(matrix_NL)) > MOST * matrix_NL.numel():
            return None
        with warnings.catch_warnings():
            # That this layout is in beta.
            warnings.simplefilter("ignore", UserWarning)
            return cls(matrix_NL.to_sparse_csr(), matrix_NL.t().to_sparse_csr())

    @property
    def shape(self) -> torch.Size:
        return self.matrix.shape

    def __len__(self) -> int:
        return self.shape[0]

    def times(self, weight_LH: Tensor) -> Tensor:
        """(N, H)"""
        return linear(weight_LH, lambda w: self.matrix @ w, lambda g: self.transposed @ g)
